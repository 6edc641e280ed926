"""Failure records: what is known of an actor that failed here, or of a process that is lost."""

from __future__ import annotations

import os
import time

from monarch._failure import MeshFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from monarch._actor.cell import Cell
    from monarch._mesh.placement import Placement, Spawned
    from monarch._proc.boards import Running
    from monarch._supervision.deaths import Dead

__all__ = ["by_owner", "failed_actor", "lost_proc", "unknown"]


def failed_actor(
    cell: Cell, endpoint: str, error: BaseException, kind: str, proc: int
) -> MeshFailure:
    """What is known of an actor that failed here."""
    from monarch._actor.remote import causes_of, describe  # noqa: PLC0415 - only on the way out

    aborted = kind in {"aborted", "undeliverable"}
    host = os.uname().nodename
    node = os.environ.get("MONARCH_NODE_ID", host)
    return MeshFailure(
        kind,
        cell.mesh_name,
        (cell.rank,),
        host=host,
        node_id=node,
        pid=os.getpid(),
        actor=cell.name,
        endpoint="" if kind == "init" else endpoint,
        message=describe(error)[1] if aborted else "",
        causes=() if aborted else causes_of(error),
        time=time.time(),
        death=f"{proc:x}-{cell.actor:x}-{time.monotonic_ns():x}",
    )


def lost_proc(
    dead: Dead, placement: Placement, rank: int, running: Sequence[Running]
) -> MeshFailure:
    """What is known of a process that this one started."""
    ref = placement.replaced.get(dead.proc, placement.refs[rank])
    report: Any = dead.exit
    code = signal = pid = None
    if report is None:
        kind, message = "lost", "its link closed, and nobody reported how it ended"
    else:
        message, code, pid = report.reason, report.code, report.pid or None
        kind = "exit" if code is not None else "lost" if pid else "start"
        if report.signal is not None:
            from monarch._proc.spec import signal_name  # noqa: PLC0415 - loaded by then

            kind, signal = "signal", signal_name(report.signal)
    if dead.hung:
        kind, message = "hung", "the process had been stopped; it was killed"
    actor, endpoint = (running[-1].actor, running[-1].endpoint) if running else (0, "")
    spawned = placement.spawned.get(actor)
    name = placement.name if spawned is None else spawned.name
    if spawned is None:
        names = {one.name for one in _on(placement, rank)}
        name = names.pop() if len(names) == 1 else name
    host = ref.host or os.uname().nodename
    request = placement.request
    return MeshFailure(
        kind,
        name,
        (rank,),
        host=host,
        node_id=ref.node or host,
        pid=pid,
        exit_code=code,
        signal=signal,
        actor="" if spawned is None else spawned.name,
        endpoint=endpoint,
        message=message,
        incarnation=ref.incarnation,
        time=time.time(),
        death=f"{dead.proc:x}",
        replaceable=bool(request and request.another and request.restart is None),
    )


def by_owner(
    placement: Placement, rank: int, failure: MeshFailure, here: int
) -> list[tuple[tuple[int, int], MeshFailure]]:
    """Each owner, in the process `here`, of actors in a lost process, with what it is told."""
    meshes: dict[tuple[int, int], list[Spawned]] = {}
    for spawned in _on(placement, rank):
        meshes.setdefault((here, spawned.sender), []).append(spawned)
    found = []
    for owner, theirs in meshes.items():
        names = [spawned.name for spawned in theirs]
        name = failure.mesh_name if failure.mesh_name in names else names[0]
        found.append((owner, failure.replace(mesh_name=name)))
    return found


def _on(placement: Placement, rank: int) -> list[Spawned]:
    """What this process spawned that has an actor in a rank."""
    known = list(placement.spawned.values())
    return [one for one in known if one.ranks is None or rank in one.ranks]


def unknown(
    proc: int, place: tuple[Placement, int] | None, *, outlived: bool = False
) -> MeshFailure:
    """What is said of a process that nobody can tell anything of.

    `outlived`: this process is a fork of the program that started it, and that has ended.
    """
    message = "its link closed, and there is nobody to ask how it ended"
    if outlived:
        message = "the program that this process was forked from has ended, and it with that"
    return MeshFailure(
        "lost",
        "" if place is None else place[0].name,
        () if place is None else (place[1],),
        message=message,
        time=time.time(),
        death=f"{proc:x}",
    )
