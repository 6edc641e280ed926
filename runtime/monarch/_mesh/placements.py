"""The placements that this process knows: of its own meshes, and of handles from elsewhere."""

from __future__ import annotations

import os
from _weakref import ref as weak

from monarch._actor.process import at_start
from monarch._mesh.placement import Placement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from monarch._actor.process import Process
    from monarch._mesh.placement import ProcRef
    from monarch._shape import Extent

__all__ = [
    "disown",
    "holding",
    "known",
    "news",
    "note_place",
    "own",
    "owned",
    "place_of",
    "placement",
    "started_by",
    "starter_of",
]

_SPARE = 64
_MOST_STARTERS = 1 << 16

owned: dict[int, Placement] = {}
"""Placements of meshes that this process spawned and has not stopped, by mesh id."""

_known: dict[int, weak[Placement]] = {}
_places: dict[int, tuple[Placement, int]] = {}
_starters: dict[int, int] = {}


def own(placement: Placement) -> None:
    """Keep the placement of a mesh that this process spawned; failures are looked up in it."""
    owned[placement.id] = placement
    _known[placement.id] = weak(placement)
    for rank, ref in placement.refs.items():
        _places[ref.id] = (placement, rank)


def note_place(placement: Placement, rank: int) -> None:
    """Look failures of the proc now in `rank` up in this placement."""
    _places[placement.refs[rank].id] = (placement, rank)


def disown(placement: Placement) -> None:
    """Forget a placement that was stopped."""
    owned.pop(placement.id, None)
    for proc, place in list(_places.items()):
        if place[0] is placement:
            _places.pop(proc, None)


def place_of(proc: int) -> tuple[Placement, int] | None:
    """The mesh, spawned by this process, and the rank that a process was started for."""
    return _places.get(proc)


def holding(proc: int) -> tuple[Placement, int] | None:
    """The mesh and rank of a process, where this process has a handle of the mesh."""
    place = _places.get(proc)
    if place is not None:
        return place
    for held in list(_known.values()):
        found = held()
        for rank, ref in () if found is None else list(found.refs.items()):
            if ref.id == proc and found is not None:
                return found, rank
    return None


def starter_of(proc: int) -> int | None:
    """The process that started another, as far as meshes known here tell."""
    place = _places.get(proc)
    return _starters.get(proc) if place is None else place[0].owner[0]


def started_by(starter: int) -> list[int]:
    """The processes that another one started, as far as meshes known here tell."""
    return [proc for proc, other in list(_starters.items()) if other == starter]


def known(mesh: int) -> Placement | None:
    """The placement of a mesh, where this process knows it."""
    found = _known.get(mesh)
    return None if found is None else found()


def placement(
    mesh: int,
    name: str,
    extent: Extent,
    owner: tuple[int, int],
    refs: dict[int, ProcRef],
) -> Placement:
    """The placement of a mesh as a handle from elsewhere tells it, merged with what is known."""
    if len(_starters) > _MOST_STARTERS:
        _starters.clear()
    for ref in refs.values():
        _starters[ref.id] = owner[0]
    found = known(mesh)
    if found is not None:
        found.update(refs)
        return found
    found = Placement(mesh, name, extent, owner, refs)
    if len(_known) > _SPARE:
        for gone in [one for one, held in _known.items() if held() is None]:
            del _known[gone]
    _known[mesh] = weak(found)
    return found


def _held(peer: int, mesh: int) -> dict[int, ProcRef] | None:
    """Another process has handles of a mesh that this one spawned: it gets what was replaced."""
    placement = owned.get(mesh)
    if placement is None:
        return None
    placement.holders.add(peer)
    return {rank: ref for rank, ref in placement.refs.items() if ref.incarnation}


def news(placement: Placement, ranks: Iterable[int]) -> tuple[Any, ...]:
    """Where some ranks of a mesh are now, as other processes are told."""
    return placement.id, {rank: placement.refs[rank].as_told() for rank in ranks}


def listen(here: Process) -> None:
    """Let a process hear of handles elsewhere."""
    here.on("holds", _held)


def _after_fork() -> None:
    """A forked child owns nothing of its parent's; handles that it has go their own way."""
    for proc, place in _places.items():
        _starters[proc] = place[0].owner[0]
    owned.clear()
    _places.clear()
    for held in list(_known.values()):
        found = held()
        if found is not None:
            found.spoil()


at_start(listen)
os.register_at_fork(after_in_child=_after_fork)
