"""`ProcessJob`: each host a worker process on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monarch._job.attach import attach_to_workers
from monarch._job.job import JobState, JobTrait
from monarch._link import secret
from monarch._proc.interpreter import command
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Mapping

_END_SECONDS = 5.0  # what a worker has to end in order before it is killed
_TAIL = 2000  # bytes of a dead worker's log that are shown


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process: `started` tells it from a later process with the same id."""

    pid: int
    address: str
    started: int


class ProcessJob(JobTrait):
    """A job whose hosts are processes on this machine: a cluster to try programs on.

    Args:
        meshes: the number of hosts of each mesh, by name.
        env: variables of the workers, over those of this program.

    A job that was stored outlives this program, and is found again by `state()`. One that was not
    ends with it. `kill()` ends the workers and all that runs on them.

    """

    def __init__(self, meshes: Mapping[str, int], env: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._meshes = dict(meshes)
        self._env = dict(env or {})
        for name, count in self._meshes.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise ValueError(f"mesh name {name!r} must be usable as an attribute")
            if not isinstance(count, int) or count < 1:
                raise ValueError(f"mesh {name!r} has {count!r} hosts; that is a number, 1 or more")
        self._workers: dict[str, list[Worker]] = {}
        self._folder: str | None = None
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._leases: list[int] = []

    def can_run(self, spec: JobTrait) -> bool:
        """Whether `spec` asks for the same hosts and variables, and all of these workers live."""
        return (
            isinstance(spec, ProcessJob)
            and spec._meshes == self._meshes  # noqa: SLF001 - of this class
            and spec._env == self._env  # noqa: SLF001
            and not self._dead()
        )

    def _create(self, client_script: str | None) -> None:
        if client_script is not None:
            raise JobError(
                "a ProcessJob runs no client program: its client is the program that made it; "
                "LocalJob().apply(client_script=…) runs one on this host"
            )
        self._folder = tempfile.mkdtemp(prefix="monarch-job-")
        try:
            for name, count in self._meshes.items():
                self._workers[name] = [self._start(f"{name}_{rank}") for rank in range(count)]
        except BaseException:
            self._kill()
            raise

    def _start(self, host: str) -> Worker:
        folder = self._folder
        assert folder is not None  # noqa: S101 - the caller made it
        address = f"ipc://{folder}/{host}"
        if sys.platform == "linux":
            address = f"ipc://@{Path(folder).name}-{host}"
        lease, held = os.pipe()
        key = secret.current().hand_down()
        environment = {**os.environ, **self._env, secret.FD_VARIABLE: str(key)}
        log = Path(folder, f"{host}.log")
        try:
            with log.open("wb") as out:
                child = subprocess.Popen(
                    command("monarch._job.worker", arguments=(address, str(lease))),
                    env=environment,
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    pass_fds=(lease, key),
                )
        except BaseException:
            os.close(held)
            raise
        finally:
            os.close(lease)
            os.close(key)
        self._leases.append(held)
        self._children[child.pid] = child
        return Worker(child.pid, address, _start_time(child.pid))

    def _state(self) -> JobState:
        dead = self._dead()
        if dead:
            raise JobError(f"{len(dead)} of the job's hosts have ended: {self._obituary(dead[0])}")
        return JobState(
            {
                name: attach_to_workers(
                    ca="trust_all_connections",
                    workers=[worker.address for worker in workers],
                    name=name,
                )
                for name, workers in self._workers.items()
            }
        )

    def _keep(self) -> None:
        """Tell the workers that they are to outlive this program."""
        leases, self._leases = self._leases, []
        for lease in leases:
            with contextlib.suppress(BrokenPipeError):  # a worker that has ended
                os.write(lease, b"k")
            os.close(lease)

    def _dead(self) -> list[str]:
        return [
            f"{name}_{rank}"
            for name, workers in self._workers.items()
            for rank, worker in enumerate(workers)
            if not self._lives(worker)
        ]

    def _lives(self, worker: Worker) -> bool:
        child = self._children.get(worker.pid)
        if child is not None:
            return child.poll() is None
        return _start_time(worker.pid) == worker.started

    def _obituary(self, host: str) -> str:
        name, _, rank = host.rpartition("_")
        worker = self._workers[name][int(rank)]
        child = self._children.get(worker.pid)
        status = f" with status {child.returncode}" if child is not None else ""
        text = f"{host} (pid {worker.pid}) ended{status}"
        log = Path(self._folder or "", f"{host}.log")
        try:
            tail = log.read_bytes()[-_TAIL:].decode(errors="replace").strip()
        except OSError:
            tail = ""
        return f"{text}; its last output:\n{tail}" if tail else text

    def _kill(self) -> None:
        workers = [worker for workers in self._workers.values() for worker in workers]
        for worker in workers:
            if self._lives(worker):
                _signal(worker.pid, signal.SIGTERM)
        end = time.monotonic() + _END_SECONDS
        pause = 0.001
        while time.monotonic() < end and any(self._lives(worker) for worker in workers):
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
        for worker in workers:
            if self._lives(worker):
                _signal(worker.pid, signal.SIGKILL)  # its zygote ends all that it started
            child = self._children.get(worker.pid)
            if child is not None:
                child.wait()
        for lease in self._leases:
            os.close(lease)
        self._leases.clear()
        self._children.clear()
        self._workers.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        state["_children"] = {}
        state["_leases"] = []
        return state


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _start_time(pid: int) -> int:
    """When a process started, in the kernel's ticks; 0 if it is not there or has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return _portable_start_time(pid)
    fields = text[text.rindex(b")") + 2 :].split()
    return 0 if fields[0] in {b"Z", b"X"} else int(fields[19])


def _portable_start_time(pid: int) -> int:
    """1 for a process that is there, where there is no /proc to tell more."""
    if sys.platform == "linux":
        return 0
    try:
        os.kill(pid, 0)
    except OSError:
        return 0
    return 1
