"""Meshes of procs for the tests, stopped afterwards."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import monarch.actor
from monarch.actor import this_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from monarch.mesh import ProcMesh

TIMEOUT = 60


@pytest.fixture
def spawn() -> Iterator[Callable[..., ProcMesh]]:
    """`spawn(hosts=2, gpus=4)`: procs on this host with these dimensions."""
    made: list[ProcMesh] = []

    def spawn_procs(**sizes: int) -> ProcMesh:
        made.append(this_host().spawn_procs(per_host=sizes))
        return made[-1]

    yield spawn_procs
    for procs in made:
        procs.stop().get(timeout=TIMEOUT)


class Failures(list[Any]):
    """Failures in the order in which they came."""

    def __init__(self) -> None:
        super().__init__()
        self._came = threading.Condition()

    def __call__(self, failure: Any) -> None:
        with self._came:
            self.append(failure)
            self._came.notify_all()

    def wait(self, count: int) -> None:
        """Return once `count` of them are there."""
        with self._came:
            assert self._came.wait_for(lambda: len(self) >= count, TIMEOUT)


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> Failures:
    """What nobody handled, in place of the end of the program."""
    found = Failures()
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", found)
    return found
