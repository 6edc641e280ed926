"""Processes that stand by for those of a mesh: started, with the modules of its actors imported.

One of them becomes the process of a lost rank in the time of two messages. They are a mesh of their
own on the same hosts, with an actor in each that imports what it is told and then takes a rank.
"""

# ruff: noqa: SLF001 - meshes of the same package
from __future__ import annotations

from monarch import config
from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch._actor.pickling import loads, pack
from monarch._actor.process import process
from monarch._mesh import placements, spawning
from monarch._mesh.placement import ProcRef
from monarch._proc import hosts, local
from monarch._restart import Restart
from monarch.errors import ActorError, SupervisionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from monarch._actor.future import Future
    from monarch._mesh.host_mesh import HostMesh
    from monarch._mesh.placement import Placement
    from monarch._mesh.proc_mesh import ProcMesh
    from monarch._mesh.spawning import Request

__all__ = ["Spares", "StandBy"]

_STOP = 2
_TAKE_S = 30.0  # for two messages and `bootstrap`, and what is left of the imports


class StandBy(Actor):
    """In a process that stands by."""

    @endpoint
    def warm(self, cls: bytes) -> None:
        """Import what a class of actors needs."""
        try:
            loads(cls)
        except Exception:  # noqa: BLE001 - where it is needed, it fails again, and is told of there
            return

    @endpoint
    def ready(self) -> None:
        """Answer after what was asked for before."""

    @endpoint
    def take(self, values: tuple[Any, ...], devices: bool) -> None:
        """Be the process with this spec from now on."""
        from monarch._proc import work  # noqa: PLC0415 - in a process it is loaded

        work.become(values, devices=devices)


class Spares:
    """The processes that stand by on some hosts, `count` on each.

    With `refills`, others start in the place of those that were taken; without, those that are
    left end then.
    """

    def __init__(self, mesh: HostMesh, count: int, name: str, *, refills: bool = True) -> None:
        self._count = count
        self._refills = refills
        # The end of one is no failure; another comes with the next that is taken.
        quiet = Restart(kind="temporary")
        self._procs: ProcMesh = mesh.spawn_procs(
            {"spares": count}, name=f"{name} spare", restart=quiet
        )
        self._classes: list[bytes] = []
        self._placement = self._procs._procs
        self._actors: Any = self._procs.spawn("stand_by", StandBy)
        self._taken: set[int] = set()

    def warm(self, cls: type) -> None:
        """Have them import what a class of actors needs, as far as they can."""
        if not self._placement.stopped:
            self._classes.append(pack(cls))
            self._actors.warm.broadcast(self._classes[-1])

    def ready(self) -> Future[Any]:
        """A future that is done once all of them have imported what they were told to."""
        done: Future[Any] = self._actors.ready.call()
        return done

    def take(
        self, placement: Placement, request: Request, ranks: Sequence[int]
    ) -> dict[int, ProcRef]:
        """Processes that are now those of some ranks; none for ranks whose host has none left."""
        asked: list[Any] = []
        if self._placement.stopped:
            return {}
        for rank in ranks:
            place = self._free(request.host(rank).proc)
            if place is None:
                continue
            ref = self._placement.refs[place]
            old = placement.refs[rank]
            new = ProcRef(ref.id, rank, ref.address, ref.host, old.incarnation + 1, ref.node)
            spec = request.spec(rank, ref.id, new.incarnation)
            future = self._at(place).take.call(spec.values(), config.value("assign_devices"))
            asked.append((rank, new, spec.label, future))
        return dict(found for one in asked if (found := self._taken_by(*one)) is not None)

    def refill(self) -> None:
        """Start others in the place of those that were taken, or end what is left."""
        if self._placement.stopped:
            return
        if not self._refills:
            if self._taken:
                self.stop("the others of its host have taken ranks")
            return
        refs = self._placement.refs
        ranks = [
            rank
            for rank, ref in refs.items()
            if rank in self._taken
            or (
                not local.lives(ref.id)
                and not hosts.is_lost(self._placement.request.host(rank).proc)
            )
        ]
        self._taken.clear()
        from monarch._mesh.respawn import remake  # noqa: PLC0415 - it knows this module

        spawning.start_again(self._placement, ranks)
        remake(self._placement, ranks)
        for rank in ranks:
            for cls in self._classes:
                self._at(rank).warm.broadcast(cls)

    def stop(self, reason: str) -> Future[None]:
        """End those that have not been taken."""
        for rank in self._taken:
            self._placement.refs.pop(rank, None)
        self._taken.clear()
        return self._procs.stop(reason)

    def _at(self, place: int) -> Any:
        return self._actors.flatten("at").slice(at=place)

    def _free(self, host: int) -> int | None:
        for number, ref in enumerate(self._placement.request.hosts):
            if ref.proc != host:
                continue
            for place in range(number * self._count, (number + 1) * self._count):
                proc = self._placement.refs[place].id
                if place not in self._taken and local.pid(proc) is not None:
                    self._taken.add(place)
                    return place
        return None

    def _taken_by(
        self, rank: int, ref: ProcRef, label: str, future: Future[Any]
    ) -> tuple[int, ProcRef] | None:
        engine = process().engine
        targets = engine.targets([ref.id], [self._actors._actor])
        try:
            future.get(_TAKE_S)
        except (ActorError, SupervisionError, TimeoutError):
            local.kill([ref.id])  # it may yet do what it was told
            return None
        # Its actor ends before others come, so that they find the main thread free.
        ended = engine.call(targets, "", pack("it has taken a rank"), None, 0, b"", _STOP)
        ended.wait(1, _TAKE_S)
        local.rename(ref.id, label)
        return rank, ref


def follow(placement: Placement, rank: int, ref: ProcRef, host: int) -> None:
    """Let a process that took a rank be the one that everybody means by it."""
    from monarch._proc import logs  # noqa: PLC0415 - few programs replace any

    old = placement.refs[rank].id
    placement.replace(rank, ref)
    logs.follow(old, ref.id, host)
    placements.note_place(placement, rank)
