"""Talks to the limited child that reads ELF files (`port.verify.serve` runs in it).

Hostile input cannot hang or bloat the verifier: each file has 5 s of CPU time, 512 MiB of memory
and 10 s of wall time. Files travel as descriptors over a socket, answers as JSON with a length.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Self

from port.errors import InputError, LimitError
from port.verify.facts import from_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from port.verify.facts import Elf

WALL_SECONDS = 10.0
START_SECONDS = 60.0
_MAX_ANSWER = 256 << 20
_BOOT = "import sys; sys.path[:] = {path!r}; from port.verify.serve import serve; serve()"


_lock = threading.Lock()
_shared: list[ElfReader] = []


def start() -> None:
    """Start the shared child ahead of its first file, so that it loads while others do."""
    with _lock:
        _ensure()


def _ensure() -> ElfReader:
    if not _shared:
        _shared.append(ElfReader())
        atexit.register(_shared[0].close)
    return _shared[0]


@contextlib.contextmanager
def shared_reader() -> Iterator[ElfReader]:
    """The one reader of this process, for one thread at a time; its child ends with the process.

    A child costs more than the files of a small wheel, so that all targets share one.
    """
    with _lock:
        yield _ensure()


class ElfReader:
    """Reads ELF files in a child that is started at once and replaced after each failure."""

    def __init__(self, *, wall_seconds: float = WALL_SECONDS) -> None:
        self._wall = wall_seconds
        self._start()

    def read(self, descriptor: int, name: str) -> Elf:
        """Read the file behind `descriptor`; `name` is for errors.

        Raises:
            InputError: it is no readable ELF.
            LimitError: a limit of time or memory was hit.

        """
        try:
            self._await_start()
            socket.send_fds(self._socket, [b"."], [descriptor])
            answer = json.loads(self._answer())
        except TimeoutError:
            self._restart()
            raise LimitError(f"{name}: reading it took more than {self._wall:g} s") from None
        except (OSError, EOFError, ValueError):
            raise self._died(name) from None
        if "elf" in answer:
            return from_json(answer["elf"])
        if answer.get("limit"):
            raise LimitError(f"{name}: reading it took {answer['limit']}")
        raise InputError(f"{name}: cannot be read as ELF: {answer['error']}")

    @property
    def pid(self) -> int:
        """Process id of the child now in use."""
        return int(self._process.pid)

    def close(self) -> None:
        """End the child."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        here = os.getcwd()  # noqa: PTH109 - this starts before anything that is slow to load
        boot = _BOOT.format(path=[entry or here for entry in sys.path])
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", boot],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        self._socket = ours
        self._ready = False

    def _await_start(self) -> None:
        """Wait until the child is there: its start is no file's time."""
        if not self._ready:
            self._socket.settimeout(START_SECONDS)
            self._receive(1)
            self._socket.settimeout(self._wall)
            self._ready = True

    def _restart(self) -> None:
        self.close()
        self._start()

    def _died(self, name: str) -> LimitError:
        try:
            status = self._process.wait(timeout=self._wall)
        except subprocess.TimeoutExpired:
            status = 0
        self._restart()
        if status == -signal.SIGXCPU:
            return LimitError(f"{name}: reading it took more CPU time than its share")
        return LimitError(f"{name}: the process that read it ended with status {status}")

    def _answer(self) -> bytes:
        size = int.from_bytes(self._receive(4), "little")
        if size > _MAX_ANSWER:
            raise ValueError("answer too long")
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        held = bytearray()
        while len(held) < size:
            piece = self._socket.recv(min(size - len(held), 1 << 20))
            if not piece:
                raise EOFError
            held += piece
        return bytes(held)
