"""Meshes of procs for the tests, stopped afterwards."""

from __future__ import annotations

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


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What nobody handled, in place of the end of the program."""
    found: list[Any] = []
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", found.append, raising=False)
    return found
