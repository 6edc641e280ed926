"""Replacing processes in place: the same ranks, new processes, actors made again."""

from __future__ import annotations

from monarch._actor.cell import cells
from monarch._actor.future import Combined, Done, Pending
from monarch._actor.pickling import dumps
from monarch._actor.process import at_start, process
from monarch._actor.replies import OK, error_from
from monarch._mesh import placements, spawning
from monarch._mesh.proc_mesh import begun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from monarch._actor.future import Future
    from monarch._actor.process import Process
    from monarch._core import Inbox
    from monarch._mesh.placement import Placement, ProcRef, Spawned

__all__ = ["create", "remake", "respawn", "when_closed"]


def respawn(placement: Placement, ranks: Sequence[int]) -> Future[None]:
    """Start new processes in some ranks of a mesh that this process started.

    Actors that this process spawned there are made again by their constructors; other processes
    make theirs again when they hear of it. A process that is still there is killed.

    Args:
        placement: the mesh.
        ranks: ranks of the whole mesh.

    Returns:
        A future that is done once the constructors are through.

    """
    from monarch._proc import local  # noqa: PLC0415 - a proc that spawns none does without

    if not ranks:
        return Done(None)
    here = process()
    local.kill([placement.refs[rank].id for rank in ranks])
    cold = _take_spares(placement, ranks)
    spawning.start_again(placement, cold)
    news = placements.news(placement, ranks)
    told = [here.asking(one, "placement", news) for one in placement.holders]
    made = _made(placement, remake(placement, ranks))
    for spares in placement.request.spares:
        spares.refill()
    title = f"proc mesh {placement.name!r}: rank {', '.join(map(str, ranks))} to be replaced"
    return Combined([*told, begun(placement, ranks), made], _nothing, title)


def _take_spares(placement: Placement, ranks: Sequence[int]) -> list[int]:
    """Put processes that stand by in some ranks; gives those for which there was none."""
    left = list(ranks)
    for spares in placement.request.spares:
        from monarch._mesh.spares import follow  # noqa: PLC0415 - only where there are some

        for rank, ref in spares.take(placement, placement.request, left).items():
            follow(placement, rank, ref, placement.request.host(rank).proc)
            left.remove(rank)
    return left


def _nothing(_all: list[Any]) -> None:
    return None


def _made(placement: Placement, made: list[tuple[Spawned, int, int]]) -> Future[None]:
    """A future of the constructors."""
    if not made:
        return Done(None)
    engine = process().engine
    title = f"proc mesh {placement.name!r} to be whole again"
    procs = [placement.refs[rank].id for _, rank, _ in made]
    targets = engine.targets(procs, [spawned.actor for spawned, _, _ in made])
    inbox = engine.call(targets, "", b"", None, 0, b"", 0)

    def settle(inbox: Inbox) -> None:
        for place in range(inbox.arrived):
            number, status, data, buffers = inbox.get(place)
            if status:
                spawned, rank, _place = made[number]
                raise error_from(title, spawned.name, rank, status, data, buffers)

    return Pending(inbox, len(made), settle, title)


def remake(placement: Placement, ranks: Sequence[int]) -> list[tuple[Spawned, int, int]]:
    """Make again what this process spawned in these ranks; gives each with rank and place."""
    made = []
    for spawned in list(placement.spawned.values()):
        for rank in ranks:
            place = _place(spawned, rank)
            if place is not None:
                _create(placement, spawned, rank, place)
                made.append((spawned, rank, place))
    return made


def _place(spawned: Spawned, rank: int) -> int | None:
    """The rank that an actor has among those it was spawned with."""
    if rank in spawned.gone:
        return None
    if spawned.ranks is None:
        return rank
    return spawned.ranks.index(rank) if rank in spawned.ranks else None


def _create(placement: Placement, spawned: Spawned, rank: int, place: int) -> None:
    engine = process().engine
    targets = engine.targets(placement.reach([rank]), [spawned.actor])
    data, buffers = spawned.data, spawned.buffers
    kept = spawned.snapshots.get(rank)
    if kept is not None:
        first = None if buffers is None else [bytes(one) for one in buffers]
        data, buffers = dumps((data, first, *kept[:2]), "snapshot")
    engine.cast(
        targets,
        "",
        data,
        buffers,
        spawned.sender,
        spawned.extent,
        spawned.flags,
        rank=place,
    )


def create(placement: Placement, spawned: Spawned, rank: int) -> None:
    """Make one actor again, in the process that is in its rank."""
    place = _place(spawned, rank)
    if place is not None:
        _create(placement, spawned, rank, place)


def when_closed(placement: Placement, spawned: Spawned, rank: int) -> Inbox:
    """An inbox that gets one word when the actor of a rank is through with its end."""
    here = process()
    inbox = here.engine.open_inbox(True)
    here.tell(placement.refs[rank].id, "when_closed", (spawned.actor, inbox.id))
    return inbox


def _when_closed(peer: int, body: tuple[int, int]) -> None:
    actor, inbox = body
    here = process()

    def tell() -> None:
        here.engine.post(peer, inbox, 0, OK, b"", None)

    cell = cells.get(actor)
    if cell is None:
        tell()
        return
    cell.at_end(tell)
    if cells.get(actor) is not cell:  # it has ended meanwhile, and may not have seen it
        try:
            (cell.on_end or []).remove(tell)
        except ValueError:
            return
        tell()


def _heard(_owner: int, body: tuple[int, dict[int, ProcRef]]) -> None:
    """The owner of a mesh tells where its ranks are now."""
    mesh, refs = body
    placement = placements.known(mesh)
    if placement is not None:
        replaced = placement.update(refs)
        if replaced and placement.spawned:
            remake(placement, replaced)


def _listen(here: Process) -> None:
    here.on("placement", _heard)
    here.on("when_closed", _when_closed)


at_start(_listen)
