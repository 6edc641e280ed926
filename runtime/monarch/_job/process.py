"""`ProcessJob`: each host a worker process on this machine."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from monarch._job.attach import attach_to_workers
from monarch._job.job import JobState, JobTrait, by_name, check_mesh
from monarch._link import secret
from monarch._proc.interpreter import command, spawn_session
from monarch.errors import JobError, SupervisionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from monarch._mesh.host_mesh import HostMesh, HostRef

_END_SECONDS = 5.0  # what a worker has to end in order before it is killed
_LEASE, _KEY = 3, 4  # descriptors of a worker
_NODE_VARIABLE = "MONARCH_NODE_ID"
_TAIL = 2000  # bytes of a dead worker's log that are shown


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process: `started` tells it from a later process with the same id."""

    pid: int
    address: str
    started: int
    node: str


class ProcessJob(JobTrait):
    """A job whose hosts are processes on this machine: a cluster to try programs on.

    Args:
        meshes: the number of hosts of each mesh, by name.
        env: variables of the workers, over those of this program.

    A job that was stored outlives this program, and is found again by `state()`. One that was not
    ends with it. `kill()` ends the workers and all that runs on them.

    """

    _transient = ("_children", "_leases", "_attached")
    _meshes: dict[str, int]
    _env: dict[str, str]
    _workers: dict[str, list[Worker]]
    _folder: str | None
    _made: int  # hosts that took another's place

    def __init__(self, meshes: Mapping[str, int], env: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._meshes = by_name("ProcessJob", "meshes", meshes, '{"workers": 2}')
        self._env = by_name("ProcessJob", "env", {} if env is None else env, '{"NAME": "value"}')
        for name, count in self._meshes.items():
            check_mesh(name, count)
        self._workers = {}
        self._folder = None
        self._children: dict[int, int | None] = {}  # by pid: the status of those that have ended
        self._leases: list[int] = []
        self._attached: list[HostMesh] = []
        self._made = 0

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
        _remove_at_exit(self._folder)
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
        own = {secret.FD_VARIABLE: str(_KEY), _NODE_VARIABLE: host}
        environment = {**os.environ, **self._env, **own}
        log = f"{folder}/{host}.log"
        # First out of the way of the numbers they get, which also makes them inheritable there.
        high = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 16) for number in (lease, key)]
        try:
            pid = spawn_session(
                command("monarch._job.worker", arguments=(address, str(_LEASE))),
                environment,
                [
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                    (os.POSIX_SPAWN_DUP2, high[0], _LEASE),
                    (os.POSIX_SPAWN_DUP2, high[1], _KEY),
                ],
            )
        except BaseException:
            os.close(held)
            raise
        finally:
            for number in (lease, key, *high):
                os.close(number)
        self._leases.append(held)
        self._children[pid] = None
        return Worker(pid, address, start_time(pid), host)

    def _state(self) -> JobState:
        dead = self._dead()
        if dead:
            raise JobError(f"{len(dead)} of the job's hosts have ended: {self._obituary(dead[0])}")
        found = {
            name: attach_to_workers(
                ca="trust_all_connections",
                workers=[worker.address for worker in workers],
                name=name,
            )
            for name, workers in self._workers.items()
        }
        for name, mesh in found.items():
            for ref, worker in zip(mesh._refs(), self._workers[name], strict=True):  # noqa: SLF001
                ref.node = worker.node
        self._attached += found.values()
        return JobState(found)

    def _replace(self, node_id: str) -> HostRef:
        for name, workers in self._workers.items():
            for rank, worker in enumerate(workers):
                if worker.node == node_id:
                    return self._replaced(name, rank, worker)
        known = ", ".join(one.node for workers in self._workers.values() for one in workers)
        raise JobError(f"the job has no host {node_id!r}; its hosts are {known}")

    def _replaced(self, name: str, rank: int, old: Worker) -> HostRef:
        if self._lives(old):
            _signal(old.pid, signal.SIGKILL)  # its zygote ends all that it started
        self._made += 1
        new = self._start(f"{name}_{rank}.{self._made}")
        self._workers[name][rank] = new
        mesh = attach_to_workers(ca="trust_all_connections", workers=[new.address], name=name)
        self._attached.append(mesh)
        (ref,) = mesh._refs()  # noqa: SLF001 - a mesh of one host
        ref.node = new.node
        return ref

    def _keep(self) -> None:
        """Tell the workers that they are to outlive this program."""
        _passing.discard((os.getpid(), self._folder or ""))
        leases, self._leases = self._leases, []
        for lease in leases:
            with contextlib.suppress(BrokenPipeError):  # a worker that has ended
                os.write(lease, b"k")
            os.close(lease)

    def _dead(self) -> list[Worker]:
        return [
            worker
            for workers in self._workers.values()
            for worker in workers
            if not self._lives(worker)
        ]

    def _lives(self, worker: Worker) -> bool:
        if worker.pid in self._children:
            return self._status(worker.pid) is None
        return start_time(worker.pid) == worker.started

    def _status(self, pid: int) -> int | None:
        """The exit status of a worker that this program started, -n for signal n; None: it runs."""
        if self._children[pid] is None:
            try:
                found, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # somebody else waits for all children of this program
                self._children[pid] = None if start_time(pid) else 0
            else:
                self._children[pid] = os.waitstatus_to_exitcode(status) if found else None
        return self._children[pid]

    def _obituary(self, worker: Worker) -> str:
        ended = self._children.get(worker.pid)
        status = f" with status {ended}" if ended is not None else ""
        text = f"{worker.node} (pid {worker.pid}) ended{status}"
        log = Path(self._folder or "", f"{worker.node}.log")
        try:
            tail = log.read_bytes()[-_TAIL:].decode(errors="replace").strip()
        except OSError:
            tail = ""
        return f"{text}; its last output:\n{tail}" if tail else text

    def _free(self) -> None:
        """Stop what this program runs on the hosts, so that its end is no failure."""
        attached, self._attached = self._attached, []
        for one in [one for mesh in attached for one in mesh.stop_procs("the job was ended")]:
            with contextlib.suppress(TimeoutError, ConnectionError, SupervisionError):
                one.get(_END_SECONDS)

    def _kill(self) -> None:
        self._free()
        workers = [worker for workers in self._workers.values() for worker in workers]
        for worker in workers:
            if self._lives(worker):
                _signal(worker.pid, signal.SIGTERM)
        for worker in self._wait(workers, _END_SECONDS):
            _signal(worker.pid, signal.SIGKILL)  # its zygote ends all that it started
        self._wait(workers, _END_SECONDS)
        for lease in self._leases:
            os.close(lease)
        self._leases.clear()
        self._children.clear()
        self._workers.clear()
        if self._folder is not None:
            _passing.discard((os.getpid(), self._folder))
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _wait(self, workers: list[Worker], seconds: float) -> list[Worker]:
        """Those that still run after this time."""
        end = time.monotonic() + seconds
        pause = 0.001
        while True:
            left = [worker for worker in workers if self._lives(worker)]
            if not left or time.monotonic() > end:
                return left
            time.sleep(pause)
            pause = min(pause * 2, 0.05)

    def _wake(self) -> None:
        self._children = {}
        self._leases = []
        self._attached = []


# Folders of jobs that end with this program, each with the process that made it.
_passing: set[tuple[int, str]] = set()


def _remove_at_exit(folder: str) -> None:
    if not _passing:
        atexit.unregister(_remove_folders)
        atexit.register(_remove_folders)
    _passing.add((os.getpid(), folder))


def _remove_folders() -> None:
    for pid, folder in _passing:
        if pid == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def start_time(pid: int) -> int:
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
