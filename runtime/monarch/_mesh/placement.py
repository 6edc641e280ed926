"""Where the procs of a mesh are, and which of them have been replaced.

A process holds one `Placement` for each mesh of procs that it knows: all its handles of that mesh,
of actors on it and of their slices share it, so that a replaced rank is found by all of them.
"""

from __future__ import annotations

from _weakref import ref as weak

from monarch._actor.process import process
from monarch._proc.finding import published
from monarch._shape import Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from monarch._actor.handle import Route
    from monarch._restart import Restart
    from monarch._shape import Extent

__all__ = ["Placement", "ProcRef", "Spawned"]

_SPARE = 64
_NEWS_S = 5.0
_NONE: frozenset[int] = frozenset()


class ProcRef:
    """One process: its id, which no other ever has, and where it is.

    Attributes:
        id: what the engine knows it by.
        rank: its place in the mesh of procs, unsliced.
        address: where it listens; empty where the id tells.
        host: the name of its machine.
        incarnation: how often the rank had been replaced before.
        node: the id of its host in a job, empty without one.

    """

    __slots__ = ("address", "host", "id", "incarnation", "node", "rank")

    def __init__(
        self,
        id: int,  # noqa: A002 - the word for it everywhere
        rank: int = 0,
        address: str = "",
        host: str = "",
        incarnation: int = 0,
        node: str = "",
    ) -> None:
        self.id = id
        self.rank = rank
        self.address = address
        self.host = host
        self.incarnation = incarnation
        self.node = node

    def as_told(self) -> ProcRef:
        """The same with the address that a process of another host needs, where there is one."""
        address = published(process(), self.address)
        if address == self.address:
            return self
        return ProcRef(self.id, self.rank, address, self.host, self.incarnation, self.node)

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.id, self.rank, self.address, self.host, self.incarnation, self.node)
        return ProcRef, fields

    def __repr__(self) -> str:
        again = f", incarnation {self.incarnation}" if self.incarnation else ""
        return f"<proc {self.id:016x}: rank {self.rank}{again}>"


class Spawned:
    """Actors that this process spawned on a mesh of procs: what it takes to make one again.

    `ranks` are those of the mesh of procs, None for all; `gone` the ones that were stopped;
    `restart` is the policy for failures of the actors themselves; `snapshots` have state that they
    gave, by rank, pickled, with the time.
    """

    __slots__ = (
        "actor",
        "buffers",
        "data",
        "extent",
        "flags",
        "gone",
        "name",
        "ranks",
        "restart",
        "sender",
        "snapshots",
    )

    def __init__(
        self,
        actor: int,
        name: str,
        ranks: tuple[int, ...] | None,
        create: tuple[bytes, list[Any] | None, int, bytes, int],
        restart: Restart | None = None,
    ) -> None:
        self.actor = actor
        self.name = name
        self.ranks = ranks
        self.gone: frozenset[int] = _NONE
        self.restart = restart
        self.snapshots: dict[int, tuple[bytes, list[bytes] | None, float]] = {}
        self.data, self.buffers, self.sender, self.extent, self.flags = create


class Placement:
    """The procs of one mesh, by rank. `version` grows with each replaced rank.

    Attributes:
        id: tells the mesh from any other, in all processes.
        name: the name the mesh was spawned with.
        extent: the extent of the whole mesh; `whole` is its shape.
        owner: process and actor (0: the program itself) that spawned it.
        refs: the procs, by rank; elsewhere than at the owner, those that handles here need.
        spawned: what this process spawned on it, by actor id.
        replaced: processes that had a rank before, the last ones, by id.
        leaving: processes that are given up, by id: their ends are no failures any more.
        lost: ranks whose process is known to be lost and has not been replaced.
        stopped: why it was stopped; empty while it runs.
        request: at the owner, what the procs were started with.
        holders: at the owner, other processes that have handles and are told of new procs.

    """

    __slots__ = (
        "__weakref__",
        "_next",
        "_reached",
        "_routes",
        "extent",
        "holders",
        "id",
        "leaving",
        "lost",
        "name",
        "owner",
        "refs",
        "replaced",
        "request",
        "spawned",
        "stopped",
        "version",
        "whole",
    )

    def __init__(
        self,
        id: int,  # noqa: A002 - the word for it everywhere
        name: str,
        extent: Extent,
        owner: tuple[int, int],
        refs: dict[int, ProcRef],
    ) -> None:
        self.id = id
        self.name = name
        self.extent = extent
        self.whole = Shape.dense(extent)
        self.owner = owner
        self.refs = refs
        self.version = 0
        self.spawned: dict[int, Spawned] = {}
        self.stopped = ""
        self.replaced: dict[int, ProcRef] = {}
        self.leaving: set[int] = set()
        self.lost: set[int] = set()
        self.request: Any = None
        self.holders: set[int] = set()
        self._routes: list[weak[Route]] = []
        self._next = _SPARE
        self._reached: tuple[Shape, tuple[int, ...]] | None = None

    def watch(self, route: Route) -> None:
        """Make a route stale once a rank is replaced or the mesh stops."""
        routes = self._routes
        if len(routes) >= self._next:
            routes[:] = [one for one in routes if one() is not None]
            self._next = 2 * len(routes) + _SPARE
        routes.append(weak(route))

    def replace(self, rank: int, ref: ProcRef) -> None:
        """Put another process in a rank: routes of handles go there from now on."""
        old = self.refs[rank]
        self.replaced[old.id] = old
        while len(self.replaced) > max(_SPARE, 2 * len(self.refs)):
            del self.replaced[next(iter(self.replaced))]
        self.refs[rank] = ref
        self.lost.discard(rank)
        self.version += 1
        self.spoil()

    def update(self, refs: dict[int, ProcRef]) -> list[int]:
        """Take newer procs, as the owner told them; gives the ranks that were replaced."""
        replaced = []
        for rank, ref in refs.items():
            old = self.refs.setdefault(rank, ref)
            if old.incarnation < ref.incarnation:
                self.replace(rank, ref)
                replaced.append(rank)
        return replaced

    def stop(self, reason: str) -> None:
        """Note that the mesh was stopped: calls of handles here are refused with `reason`."""
        self.stopped = reason
        self.spawned.clear()
        self.spoil()

    def retire(self, actor: int, ranks: Iterable[int]) -> None:
        """Note that actors of some ranks were stopped: they are not made again."""
        spawned = self.spawned.get(actor)
        if spawned is not None:
            spawned.gone |= set(ranks)
            left = self.refs if spawned.ranks is None else spawned.ranks
            if spawned.gone.issuperset(left):
                del self.spawned[actor]

    def spoil(self) -> None:
        """Make all routes stale."""
        self._reached = None
        routes, self._routes = self._routes, []
        for one in routes:
            route = one()
            if route is not None:
                route.stale = True

    def procs_of(self, shape: Shape) -> tuple[int, ...]:
        """The ids of the procs of a shape, as `reach` gives them; the last answer is kept."""
        reached = self._reached
        if reached is None or reached[0] is not shape:
            self._reached = reached = (shape, self.reach(shape.ranks()))
        return reached[1]

    def reach(self, ranks: Iterable[int]) -> tuple[int, ...]:
        """The ids of the procs of some ranks, which can be sent to from now on."""
        here = process()
        if self.owner[0] != here.id and here.id not in self.holders:
            self.holders.add(here.id)
            # The handle may be older than the last respawn: its owner knows, and tells from now on.
            newer = here.ask_briefly(self.owner[0], "holds", self.id, _NEWS_S)
            if newer:
                self.update(newer)
        ids = []
        for rank in ranks:
            ref = self.refs[rank]
            if ref.address:
                here.add_peer(ref.id, ref.address)
            ids.append(ref.id)
        return tuple(ids)

    def told(self, shape: Shape) -> tuple[Any, ...]:
        """What `placement` takes to find or make it elsewhere, for handles of some ranks."""
        refs = self.refs
        some = {rank: refs[rank].as_told() for rank in shape.ranks()}
        return self.id, self.name, self.extent, self.owner, some

    def __repr__(self) -> str:
        return f"<procs of {self.name!r} {self.extent}, version {self.version}>"
