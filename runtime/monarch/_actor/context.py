"""`context()`: who runs here, and which message it handles."""

from __future__ import annotations

from monarch._actor.cell import cells
from monarch._actor.current import current
from monarch._shape import decode_extent
from monarch._shape.extent import Point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from monarch._actor.cell import Cell, Line
    from monarch._core import Request

__all__ = [
    "ActorInstance",
    "Context",
    "Creator",
    "context",
    "current_actor_name",
    "current_rank",
    "current_size",
    "provide",
]

_ROOT = "root"


class ActorInstance:
    """The actor that runs here; outside an actor, the program itself.

    What concerns meshes (`proc`, `proc_mesh`, and others that a floor above provides) is made when
    it is asked for.
    """

    __slots__ = ("_cell",)

    def __init__(self, cell: Cell | None) -> None:
        self._cell = cell

    @property
    def rank(self) -> Point:
        """Its place in the mesh in which it was spawned."""
        cell = self._cell
        return _point(0, b"") if cell is None else _point(cell.place, cell.extent)

    @property
    def name(self) -> str:
        """The name it was spawned with; `root` for the program itself."""
        return _ROOT if self._cell is None else self._cell.name

    @property
    def class_name(self) -> str | None:
        """The name of its class, with its module; None for the program itself."""
        return None if self._cell is None else self._cell.line[-1][1]

    @property
    def creator(self) -> Creator | None:
        """Who spawned it; None for the program itself."""
        return None if self._cell is None else Creator(self._cell.creator)

    @property
    def proc_id(self) -> str:
        """The id of its process."""
        from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

        return f"{process().id:016x}"

    @property
    def actor_id(self) -> str:
        """Its id, unique in all of the running system; it begins with its name."""
        cell = self._cell
        if cell is None:
            return f"client.{self.proc_id}:{0:016x}"
        return f"{cell.name}.{self.proc_id}:{cell.actor:016x}"

    def stop(self, reason: str = "") -> None:
        """End this actor once it has handled what was sent to it before.

        Raises:
            RuntimeError: called outside an actor.

        """
        self._end("stop", reason)

    def abort(self, reason: str = "") -> None:
        """Fail this actor: its owner gets a failure with the reason.

        Raises:
            RuntimeError: called outside an actor.

        """
        self._end("abort", reason)

    def kill(self, reason: str = "") -> None:
        """As `abort`."""
        self._end("abort", reason)

    def _end(self, how: str, reason: str) -> None:
        if self._cell is None:
            raise RuntimeError(f"{how}() is for actors, and this is the program itself")
        from monarch._actor.lifecycle import end_oneself  # noqa: PLC0415 - it is above this module

        end_oneself(self._cell, how, reason)

    def __getattr__(self, name: str) -> Any:
        make = _providers.get(name)
        if make is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return make(self._cell)

    def __repr__(self) -> str:
        return line_text(() if self._cell is None else self._cell.line)


class Creator:
    """Who spawned an actor: another actor, or the program itself."""

    __slots__ = ("_line",)

    def __init__(self, line: Line) -> None:
        self._line = line

    @property
    def name(self) -> str:
        """The name it was spawned with; `root` for the program itself."""
        return self._line[-1][0] if self._line else _ROOT

    @property
    def class_name(self) -> str | None:
        """The name of its class, with its module; None for the program itself."""
        return self._line[-1][1] if self._line else None

    @property
    def rank(self) -> Point:
        """Its place in the mesh in which it was spawned."""
        return _point(*self._line[-1][2:]) if self._line else _point(0, b"")

    @property
    def creator(self) -> Creator | None:
        """Who spawned it; None for the program itself."""
        return Creator(self._line[:-1]) if self._line else None

    def __repr__(self) -> str:
        return line_text(self._line)


class Context:
    """Who runs here, as `actor_instance`, and the place of the message, as `message_rank`."""

    __slots__ = ("_request", "actor_instance")

    def __init__(self, request: Request | None, cell: Cell | None) -> None:
        self._request = request
        self.actor_instance = ActorInstance(cell)

    @property
    def message_rank(self) -> Point:
        """The place of this actor in the mesh that was called: inside the slice, if it was one."""
        request = self._request
        return _point(0, b"") if request is None else _point(request.rank, request.extent)

    def __repr__(self) -> str:
        return f"<context of {self.actor_instance}>"


def context() -> Context:
    """The context of what runs here: of the message at hand, or of the program itself."""
    request = current.get()
    if request is None:
        from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

        process()
        return Context(None, None)
    return Context(request, cells.get(request.actor))


def current_rank() -> Point:
    """The place of this actor in the mesh that was called: inside the slice, if it was one."""
    return context().message_rank


def current_size() -> dict[str, int]:
    """The sizes of the mesh that was called, by dimension."""
    return dict(context().message_rank.extent)


def current_actor_name() -> str:
    """The id of the actor that runs here: its name with what makes it unique."""
    return context().actor_instance.actor_id


def provide(name: str, make: Callable[[Cell | None], Any]) -> None:
    """Let `context().actor_instance` have an attribute that a floor above makes."""
    _providers[name] = make


_providers: dict[str, Callable[[Cell | None], Any]] = {}


def line_text(line: Line) -> str:
    """Who spawned whom, as text: `<root>.<app.Trainer trainers{'gpus': 1/2}>`."""
    parts = [f"<{_ROOT}>"]
    for name, class_name, place, extent in line:
        rank = _point(place, extent)
        parts.append(f"<{class_name} {name}{rank if len(rank) else ''}>")
    return ".".join(parts)


def _point(rank: int, extent: bytes) -> Point:
    return Point(rank, decode_extent(extent))
