"""Processes on this host for one test, what befalls them, and what is told of it."""

from __future__ import annotations

import os
import signal
import threading
from time import monotonic, sleep

import monarch.actor
from monarch._supervision.service import settle
from monarch.actor import this_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from monarch._failure import MeshFailure
    from monarch.actor import Actor, ProcMesh

    T = TypeVar("T", bound=Actor)

__all__ = ["Cluster", "Clusters", "Failures", "warm_up"]

_STOP_S = 60.0
_LOOK_S = 0.002


class Failures(list["MeshFailure"]):
    """Failures that nobody handled, in the order in which they came."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self.times: list[float] = []

    def __call__(self, failure: MeshFailure) -> None:
        """Take one; this is the hook."""
        with self._changed:
            self.append(failure)
            self.times.append(monotonic())
            self._changed.notify_all()

    def wait(self, count: int = 1, timeout: float = 30.0) -> MeshFailure:
        """The failure number `count`, waited for.

        Raises:
            TimeoutError: fewer came within `timeout` seconds.

        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self) >= count, timeout):
                raise TimeoutError(
                    f"{len(self)} failures within {timeout:g} s, not {count}: "
                    f"{[str(failure) for failure in self]}"
                )
            return self[count - 1]


class Cluster:
    """Processes of one mesh.

    Attributes:
        procs: the mesh.
        failures: what nobody handled; shared by all clusters of a test.

    """

    def __init__(self, procs: ProcMesh, failures: Failures) -> None:
        self.procs = procs
        self.failures = failures

    def spawn(self, name: str, Class: type[T], *args: Any, **kwargs: Any) -> T:  # noqa: N803 - as ProcMesh.spawn
        """Spawn actors in all processes."""
        return self.procs.spawn(name, Class, *args, **kwargs)

    def pid(self, rank: int) -> int:
        """The process id of a rank, once it has started.

        Raises:
            ProcessLookupError: it has ended.

        """
        from monarch._proc import local  # noqa: PLC0415 - of a lower floor

        placement = self.procs._procs  # noqa: SLF001 - as above
        self.procs.slice(**self._place(rank)).initialized.get(_STOP_S)
        proc = placement.refs[rank].id
        end = monotonic() + _STOP_S
        # The pid comes from who started it, and may be later than its own first word.
        while (found := local.pid(proc)) is None and local.lives(proc) and monotonic() < end:
            sleep(_LOOK_S)
        if found is None:
            raise ProcessLookupError(f"rank {rank} of {self.procs} has ended")
        return found

    def kill(self, rank: int, number: int = signal.SIGKILL) -> int:
        """Send a signal to the process of a rank; its pid."""
        pid = self.pid(rank)
        os.kill(pid, number)
        return pid

    def _place(self, rank: int) -> dict[str, int]:
        place = {}
        for label, size in reversed(self.procs.sizes.items()):
            rank, place[label] = divmod(rank, size)
        return place


class Clusters:
    """What the fixture `cluster` gives: called with a number of processes, or with dimensions."""

    def __init__(self) -> None:
        self.failures = Failures()
        self._made: list[Cluster] = []
        self._hook = monarch.actor.unhandled_fault_hook
        monarch.actor.unhandled_fault_hook = self.failures

    def __call__(self, procs: int = 1, **per_host: int) -> Cluster:
        """Start processes, `procs` in a dimension of that name, or as many as `per_host` asks."""
        sizes = per_host or {"procs": procs}
        made = Cluster(this_host().spawn_procs(per_host=sizes), self.failures)
        self._made.append(made)
        return made

    def close(self) -> None:
        """Stop all processes and let failures go where they went before."""
        try:
            for made in self._made:
                made.procs.stop().get(_STOP_S)
        finally:
            settle()
            monarch.actor.unhandled_fault_hook = self._hook


def warm_up() -> None:
    """Start what the runtime keeps for as long as the program runs."""
    procs = this_host().spawn_procs(per_host={"procs": 1})
    procs.initialized.get(_STOP_S)
    procs.stop().get(_STOP_S)
