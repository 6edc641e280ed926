"""Actors that come to grief in every way there is."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from monarch.actor import Actor, endpoint, this_host


class Mortal(Actor):
    """Dies as it is told."""

    def __init__(self, fault: str = "") -> None:
        if fault:
            raise ValueError(fault)

    @endpoint
    def pid(self) -> int:
        return os.getpid()

    @endpoint
    def leave(self, code: int) -> None:
        os._exit(code)

    @endpoint
    def train_step(self, name: str) -> None:
        os.kill(os.getpid(), signal.Signals[name])

    @endpoint
    def fail(self, text: str) -> None:
        raise ValueError(text)

    @endpoint(explicit_response_port=True)
    def fail_before_reply(self, _port, text: str) -> None:
        raise ValueError(text)

    @endpoint
    def exit_by_exception(self) -> None:
        raise SystemExit(3)

    @endpoint
    def eat_memory(self, limit: int) -> int:
        import resource  # noqa: PLC0415 - here alone

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        import ctypes  # noqa: PLC0415 - as above

        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        if libc.malloc(ctypes.c_size_t(2 * limit)) is None:
            libc.abort()  # as code does that does not expect this
        return 0

    @endpoint
    def recurse_in_c(self) -> None:
        import resource  # noqa: PLC0415 - as above
        import sys  # noqa: PLC0415 - as above

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.setrecursionlimit(10**9)
        nested: list = []
        for _ in range(10**6):
            nested = [nested]
        with contextlib.suppress(RecursionError):
            repr(nested)
        os.kill(os.getpid(), signal.SIGSEGV)  # this interpreter guards its stack

    @endpoint
    def hold_the_interpreter(self, seconds: float) -> str:
        import ctypes  # noqa: PLC0415 - as above

        sleep = ctypes.PyDLL(None).usleep  # the lock of the interpreter stays taken
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sleep(500_000)
        return "done"


class Manager(Actor):
    """Owns workers, in processes of its own or in those that it is given."""

    def __init__(self, answer: object = None, procs: object = None) -> None:
        self.answer = answer
        self.heard: list[object] = []
        self.procs = procs
        self.workers: Mortal | None = None

    @endpoint
    def hire(self, count: int, fault: str = "") -> list[int]:
        if self.procs is None:
            self.procs = this_host().spawn_procs(per_host={"n": count})
        self.workers = self.procs.spawn("workers", Mortal, fault)
        return [] if fault else list(self.workers.pid.call().get(timeout=60).values())

    @endpoint
    def order(self, what: str, argument: object) -> None:
        getattr(self.workers, what).broadcast(argument)

    @endpoint
    def told(self) -> list[object]:
        return self.heard

    @endpoint
    def handle(self) -> object:
        return self.workers

    def __supervise__(self, failure: object) -> object:
        self.heard.append(failure)
        if self.answer == "raise":
            raise RuntimeError("cannot help")
        return self.answer
