"""`ActorMesh`: the handle of spawned actors, whole or sliced."""

# ruff: noqa: SLF001 - meshes of the same class
from __future__ import annotations

from monarch import config
from monarch._actor.actor import reserve
from monarch._actor.current import sender
from monarch._actor.future import Pending
from monarch._actor.generic import Generic, R
from monarch._actor.handle import ActorHandle, Route
from monarch._actor.pickling import pack
from monarch._actor.process import process
from monarch._actor.replies import ERROR
from monarch._mesh import placements
from monarch._shape import Shape, ShapedMesh, ValueMesh, encode_extent
from monarch._shape.value_mesh import Failed
from monarch.errors import SupervisionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from monarch._actor.future import Future
    from monarch._core import Inbox
    from monarch._mesh.placement import Placement

__all__ = ["ActorMesh"]

_STOP = 2


class ActorMesh(ShapedMesh, ActorHandle, Generic[R]):
    """Actors of one class, one in each proc of a mesh; their endpoints are its attributes.

    It comes from `ProcMesh.spawn`. Slices share everything but their dimensions. It can be sent to
    any actor, which calls the same actors by it. Only who spawned the actors is told when one of
    them fails; callers get the error of their call.
    """

    def __init__(self, cls: type, name: str, actor: int, procs: Placement, shape: Shape) -> None:
        self._class = cls
        self._name = name
        self._actor = actor
        self._procs = procs
        self._shape = shape
        self._kept: Route | None = None
        self._stopped = ""

    @property
    def initialized(self) -> Future[bool]:
        """True once all constructors are through.

        Its error is a `SupervisionError` where one raised, or a proc is lost.
        """
        route = self._route()
        inbox = route.engine.call(route.targets, "", b"", None, sender(), route.extent, 0)
        return Pending(inbox, route.count, self._begun, f"{self._title()} to be initialized")

    def stop(self, reason: str = "stopped by client") -> Future[None]:
        """Stop the actors: each handles what it has been sent, runs `__cleanup__` and ends.

        Later calls are refused with `SupervisionError`. Ranks that are lost are passed over, and
        stopping twice is no error. Where a `__cleanup__` raises, its actor has ended all the same,
        and waiting for the stop raises that `ActorError`. Where an actor has not ended within the
        setting `stop_actor_timeout`, waiting without a timeout raises `TimeoutError`; the actor
        ends when it can.

        Args:
            reason: what later calls are told.

        """
        route = self._route(stopped=True)
        self._stopped = reason
        self._procs.retire(self._actor, self._shape.ranks())
        data = pack(reason)
        inbox = route.engine.call(route.targets, "", data, None, sender(), route.extent, _STOP)
        route.stale = True
        limit: float = config.value("stop_actor_timeout")
        return Pending(inbox, route.count, self._gone, f"{self._title()} to stop", limit)

    def _gone(self, inbox: Inbox) -> None:
        """All have ended, and so has one that is lost or was stopped before."""
        for place in range(inbox.arrived):
            rank, status, data, _buffers = inbox.get(place)
            if status == ERROR:
                raise self._error(rank, status, data)

    def _begun(self, inbox: Inbox) -> bool:
        for place in range(inbox.arrived):
            rank, status, data, _buffers = inbox.get(place)
            if status:
                raise self._error(rank, status, data)
        return True

    def _error(self, rank: int, status: int, data: Any) -> BaseException:
        from monarch._actor.replies import error_from  # noqa: PLC0415 - only on the way out

        return error_from(self._title(), "", self._base_rank(rank), status, data, None)

    # What handles give to calls.

    def _route(self, *, stopped: bool = False) -> Route:
        route = self._kept
        if route is not None and not route.stale:
            return route
        procs = self._procs
        why = self._stopped or procs.stopped
        if why and not stopped:
            raise SupervisionError(f"{self._title()} takes no calls: it was stopped: {why}")
        ids = procs.procs_of(self._shape)
        route = Route(process().engine, ids, (self._actor,) * len(ids), encode_extent(self.extent))
        if procs.request is not None or procs.owner[0] != route.engine.proc:
            procs.watch(route)  # this process itself is never replaced
        self._kept = route
        return route

    def _gather(self, values: list[Any], errors: dict[int, BaseException] | None = None) -> Any:
        for rank, error in (errors or {}).items():
            values[rank] = Failed(error)
        return ValueMesh.over(self.extent, values)

    def _title(self) -> str:
        return f"actor mesh {self._name!r} {self.extent}"

    def _lost(self) -> set[int]:
        return self._procs.lost.intersection(self._shape.ranks())

    def _base_rank(self, rank: int) -> int:
        return self._shape.ndslice.get(rank)

    def _new_with_shape(self, shape: Shape) -> Self:
        if shape == self._shape:
            return self
        part = type(self)(self._class, self._name, self._actor, self._procs, shape)
        part._stopped = self._stopped
        return part

    def __str__(self) -> str:
        return f"<{self._title()} of {self._class.__qualname__}>"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ActorMesh):
            return NotImplemented
        return self._actor == other._actor and self._shape == other._shape

    def __hash__(self) -> int:
        return hash((self._actor, self._shape))

    def __reduce__(self) -> tuple[object, ...]:
        told = self._procs.told(self._shape)
        return _rebuild, (self._class, self._name, self._actor, self._shape, told, self._stopped)


def _rebuild(
    cls: type, name: str, actor: int, shape: Shape, told: tuple[Any, ...], stopped: str
) -> ActorMesh[Any]:
    mesh: ActorMesh[Any] = ActorMesh(cls, name, actor, placements.placement(*told), shape)
    mesh._stopped = stopped
    return mesh


reserve(*(name for name in dir(ActorMesh) if not name.startswith("_")))
