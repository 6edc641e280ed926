"""What a restart stops and starts: the processes of a mesh, or the actors of one."""

from __future__ import annotations

from monarch._actor.current import sender
from monarch._actor.pickling import pack
from monarch._actor.process import process
from monarch._mesh.ends import stop_procs, when_ended
from monarch._mesh.respawn import create, respawn, when_closed
from monarch._proc import hosts, local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol, TypeVar

    from monarch._mesh.placement import Placement, Spawned

    class Death(Protocol):
        """Of a rank."""

        @property
        def rank(self) -> int: ...

    D = TypeVar("D", bound=Death)

__all__ = ["Actors", "Procs"]

_STOP = 2
_KILLED_S = 10.0  # what the kernel gets to take away a process that was killed
_WHY = "it is restarted together with another rank"


class Procs:
    """The processes of a mesh that this process started."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.title = f"proc mesh {placement.name!r}"

    def ranks(self) -> list[int]:
        """In the order in which they are started."""
        return sorted(self.placement.refs)

    def owner(self) -> int:
        """The actor of this process that is told when it is given up."""
        return self.placement.owner[1]

    def ended(self) -> bool:
        """Whether the mesh was stopped."""
        return bool(self.placement.stopped)

    def has(self, rank: int, proc: int) -> bool:
        """Whether a process still stands for a rank, and was not replaced meanwhile."""
        return self.placement.refs[rank].id == proc

    def apart(self, deaths: list[D]) -> list[D]:
        """Deaths that do not have the same cause: a host that is lost is one death."""
        found: dict[object, D] = {}
        for death in deaths:
            host = self.placement.request.host(death.rank).proc
            found.setdefault(host if hosts.is_lost(host) else -death.rank - 1, death)
        return list(found.values())

    def stop(self, rank: int, shutdown: float) -> None:
        """Return when the process of a rank has ended, killed after `shutdown` seconds."""
        proc = self.placement.refs[rank].id
        ended = when_ended([proc], lambda _inbox: None, f"rank {rank} of {self.title} to end")
        local.stop([proc], _WHY, shutdown)
        _within(ended, shutdown + _KILLED_S)

    def start(self, ranks: Sequence[int], shutdown: float) -> None:  # noqa: ARG002 - as of actors
        """Put new processes in these ranks, and make their actors again.

        A host that is lost is replaced first, and all its ranks start again.
        """
        request = self.placement.request
        places = {rank // request.count for rank in ranks}
        lost = [place for place in sorted(places) if hosts.is_lost(request.hosts[place].proc)]
        for place in lost:
            request.another(place)
        more = [rank for rank in self.ranks() if rank // request.count in lost]
        ranks = sorted({*ranks, *more})
        respawn(self.placement, ranks)
        if self.placement.stopped:  # meanwhile, and it did not know of the new ones
            local.kill([self.placement.refs[rank].id for rank in ranks])

    def end(self, why: str) -> None:
        """Stop the whole mesh."""
        if not self.placement.stopped:
            stop_procs(self.placement, why, self.title)


class Actors:
    """The actors of a mesh that this process spawned, in processes that go on."""

    def __init__(self, placement: Placement, spawned: Spawned) -> None:
        self.placement = placement
        self.spawned = spawned
        self.title = f"actor mesh {spawned.name!r}"

    def ranks(self) -> list[int]:
        """As `Procs.ranks`."""
        ranks = self.spawned.ranks
        return sorted(self.placement.refs) if ranks is None else list(ranks)

    def owner(self) -> int:
        """As `Procs.owner`."""
        return self.spawned.sender

    def ended(self) -> bool:
        """As `Procs.ended`."""
        known = self.placement.spawned.get(self.spawned.actor)
        return bool(self.placement.stopped) or known is not self.spawned

    def has(self, rank: int, proc: int) -> bool:
        """As `Procs.has`; one that was stopped on purpose is not started again."""
        return self.placement.refs[rank].id == proc and rank not in self.spawned.gone

    @staticmethod
    def apart(deaths: list[D]) -> list[D]:
        """As `Procs.apart`."""
        return deaths

    def stop(self, rank: int, shutdown: float) -> None:
        """Return when the actor of a rank has ended.

        Nothing but the end of its process ends one that is stuck: that is killed after `shutdown`
        seconds, and another one started.
        """
        proc = self.placement.refs[rank].id
        engine = process().engine
        targets = engine.targets([proc], [self.spawned.actor])
        inbox = engine.call(targets, "", pack(_WHY), None, sender(), b"", _STOP)
        if not inbox.wait(1, shutdown):
            self._replace(rank)

    def start(self, ranks: Sequence[int], shutdown: float) -> None:
        """Make the actors of these ranks again, once the old ones are through."""
        waits = [(rank, when_closed(self.placement, self.spawned, rank)) for rank in ranks]
        for rank, closed in waits:
            if rank in self.spawned.gone:
                continue
            if not closed.wait(1, shutdown):
                self._replace(rank)
            if self.placement.spawned.get(self.spawned.actor) is self.spawned:
                create(self.placement, self.spawned, rank)

    def end(self, why: str) -> None:
        """Stop the actors that are left."""
        if self.ended():
            return
        engine = process().engine
        ranks = [rank for rank in self.ranks() if rank not in self.spawned.gone]
        self.placement.retire(self.spawned.actor, ranks)
        ids = [self.placement.refs[rank].id for rank in ranks]
        targets = engine.targets(ids, [self.spawned.actor] * len(ids))
        engine.cast(targets, "", pack(why), None, sender(), b"", _STOP)

    def _replace(self, rank: int) -> None:
        """Put another process in the place of one that is stuck, where this one can."""
        if self.placement.request is not None:
            respawn(self.placement, [rank])


def _within(ended: object, seconds: float) -> None:
    try:
        ended.get(seconds)  # type: ignore[attr-defined]  # a future
    except TimeoutError:
        return  # not even the kernel can end it: it goes on without
