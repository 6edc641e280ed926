"""`Cell`: an actor at home in this process, and what is known of it."""

from __future__ import annotations

from monarch._actor.actor import endpoints_of, needs_loop, plain_of
from monarch._actor.signature import Method

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Line = tuple[tuple[str, str, int, bytes], ...]
    """Actors, each spawned by the one before: name, class, place, and extent as on the wire."""

__all__ = ["SNAPSHOT", "Cell", "cells"]

SNAPSHOT = "__snapshot__"


class Cell:
    """One actor of this process.

    Attributes:
        actor: its id, the same in every process of its mesh.
        name: what it was spawned as; `mesh_name` is the mesh's.
        mesh_id: the mesh's id, as its owner knows it.
        rank: the rank of its process in the mesh of processes, unsliced.
        place: its place among the actors spawned with it, whose `extent` is as on the wire.
        owner: the process and the actor that spawned it; `creator` is that actor's line.
        instance: the object itself, None until its constructor is through and after its end.
        plain: functions of its endpoints that can be called without more ado, its class's own.
        methods: the other endpoints, bound.
        loop: it lives on an event loop.
        home: that event loop.
        running: what runs on the event loop now, by request.
        asking: held while it is asked about a failure, or a message that came back; on a loop only.
        ended: why it takes no more messages; None while it does.
        on_end: what to call once it has ended, last in first out.

    """

    __slots__ = (
        "actor",
        "asking",
        "cls",
        "creator",
        "ended",
        "extent",
        "home",
        "instance",
        "loop",
        "mesh_id",
        "mesh_name",
        "methods",
        "name",
        "on_end",
        "owner",
        "place",
        "plain",
        "rank",
        "running",
    )

    def __init__(
        self, actor: int, cls: type, info: tuple[Any, ...], rank: int, extent: bytes
    ) -> None:
        name, mesh_id, mesh_name, ranks, owner, creator = info
        self.actor = actor
        self.cls = cls
        self.name: str = name
        self.mesh_id: int = _same(mesh_id)
        self.mesh_name: str = mesh_name
        self.place = rank
        self.rank: int = rank if ranks is None else ranks[rank]
        self.extent = extent
        self.owner: tuple[int, int] = _same(owner)
        self.creator: Line = creator
        self.instance: Any = None
        self.loop = needs_loop(cls)
        self.home: object = None
        self.methods: dict[str, tuple[Method, Callable[..., Any]]] = _NOTHING
        self.plain: Mapping[str, Callable[..., Any]] = _NOTHING
        self.running: dict[Any, Any] = {} if self.loop else _NOTHING
        self.asking: Any = None
        self.ended: str | None = None
        self.on_end: list[Callable[[], None]] | None = None

    @property
    def line(self) -> Line:
        """Who spawned whom, down to this actor: what it is the `creator` of has this."""
        cls = self.cls
        own = (self.name, f"{cls.__module__}.{cls.__qualname__}", self.place, self.extent)
        return (*self.creator, own)

    def born(self, instance: object) -> None:
        """The constructor is through: its endpoints can be called."""
        self.instance = instance
        self.plain = plain = plain_of(self.cls)
        for name, method in endpoints_of(self.cls).items():
            if name not in plain:
                self._add(name, method)
        snapshot = getattr(self.cls, SNAPSHOT, None)
        if snapshot is not None:
            self._add(SNAPSHOT, Method(snapshot, SNAPSHOT))

    def ends(self) -> None:
        """It takes no more messages."""
        self.instance = None
        self.methods = _NOTHING
        self.plain = _NOTHING

    def at_end(self, function: Callable[[], None]) -> None:
        """Call `function()` once the actor has ended, last in first out."""
        if self.on_end is None:
            self.on_end = []
        self.on_end.append(function)

    def find(self, name: str, *, explicit: bool) -> tuple[Method, Callable[..., Any]]:
        """An endpoint, or a method that is called by `as_endpoint`.

        Raises:
            AttributeError: the class has no such method.

        """
        found = self.methods.get(name)
        if found is not None and found[0].explicit == explicit:
            return found
        function = None if name.startswith("__") else getattr(self.cls, name, None)
        if not callable(function):
            known = ", ".join(sorted(endpoints_of(self.cls))) or "none"
            raise AttributeError(  # noqa: TRY004 - it is an attribute that is missing
                f"{self.cls.__qualname__} has no endpoint {name!r}; its endpoints are {known}"
            )
        method = Method(function, name, explicit=explicit)
        if found is not None:
            return method, getattr(self.instance, name)
        return self._add(name, method)

    def _add(self, name: str, method: Method) -> tuple[Method, Callable[..., Any]]:
        if self.methods is _NOTHING:
            self.methods = {}
        self.methods[name] = entry = (method, getattr(self.instance, name))
        return entry

    def __repr__(self) -> str:
        return f"<actor {self.name} of class {self.cls.__qualname__}, rank {self.rank}>"


_NOTHING: dict[Any, Any] = {}
_MOST_SEEN = 1024
_seen: dict[Any, Any] = {}


def _same(value: Any) -> Any:
    """An equal value that other actors have: it came here once for each of them."""
    if len(_seen) >= _MOST_SEEN:
        _seen.clear()
    return _seen.setdefault(value, value)


cells: dict[int, Cell] = {}
"""The actors of this process, by id."""
