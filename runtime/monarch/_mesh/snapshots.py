"""State that actors give while they live, for those that are made again in their place."""

# ruff: noqa: SLF001 - of handles of the same package
from __future__ import annotations

from monarch._actor.cell import SNAPSHOT
from monarch._actor.current import sender
from monarch._actor.future import Pending
from monarch._actor.pickling import pack
from monarch._mesh.actor_mesh import ActorMesh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from monarch._actor.future import Future
    from monarch._core import Inbox
    from monarch._mesh.placement import Spawned

__all__ = ["snapshot", "snapshots"]


def snapshot(actors: Any) -> Future[None]:
    """Keep the present state of actors: one that is made again starts from it.

    Each actor's `__snapshot__()` is called between two messages, like an endpoint without
    arguments. What it gives is pickled and kept by this process until the next snapshot. An actor
    that is made again, by `respawn`, `replace_node` or a policy, runs its constructor and then
    `__restore__(state)` with it, before any message; where that raises, the actor has failed. An
    actor without a snapshot has its constructor alone.

    Args:
        actors: an actor mesh that this process spawned, or a slice of it.

    Returns:
        A future that is done once all have answered. Those that have are kept also where it raises.

    Raises:
        TypeError: the class has not both methods.
        RuntimeError: these actors were spawned by another process, or are gone.

    """
    spawned = _spawned(actors, "snapshot")
    missing = [name for name in (SNAPSHOT, "__restore__") if not hasattr(actors._class, name)]
    if missing:
        raise TypeError(
            f"snapshot({actors}): {actors._class.__qualname__} has no {' and no '.join(missing)}; "
            "__snapshot__(self) gives the state, __restore__(self, state) takes it"
        )
    from time import time  # noqa: PLC0415 - only here

    now = time()
    route = actors._route()
    asked = pack(((), {}))
    inbox = route.engine.call(route.targets, SNAPSHOT, asked, None, sender(), route.extent, 0)

    def settle(inbox: Inbox) -> None:
        error: BaseException | None = None
        for place in range(inbox.arrived):
            rank, status, data, buffers = inbox.get(place)
            if status:
                error = error or actors._error(rank, status, data)
            else:
                copies = None if buffers is None else [bytes(one) for one in buffers]
                spawned.snapshots[actors._base_rank(rank)] = (bytes(data), copies, now)
        if error is not None:
            raise error

    return Pending(inbox, route.count, settle, f"{actors._title()} to give snapshots")


def snapshots(actors: Any) -> dict[int, float]:
    """Which ranks have a snapshot that they would start from, and when it was taken.

    Args:
        actors: as of `snapshot`.

    Returns:
        By rank of the mesh of processes, unsliced, the time in seconds since the epoch. A rank that
        is not in it starts from its constructor.

    Raises:
        RuntimeError: as `snapshot`.

    """
    spawned = _spawned(actors, "snapshots")
    return {rank: kept[2] for rank, kept in sorted(spawned.snapshots.items())}


def _spawned(actors: Any, asked: str) -> Spawned:
    if not isinstance(actors, ActorMesh):
        raise TypeError(f"{asked}() is of an actor mesh, not of {actors!r}")
    found = actors._procs.spawned.get(actors._actor)
    if found is None:
        raise RuntimeError(
            f"{asked}({actors}): only the process that spawned these actors makes them again, and "
            "keeps their snapshots; here they are not, or were stopped"
        )
    return found
