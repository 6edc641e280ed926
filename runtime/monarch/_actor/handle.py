"""What calls need of a mesh of actors: where they go, and what to call it."""

# ruff: noqa: SLF001 - endpoints, handles and futures know each other
from __future__ import annotations

from monarch._actor.actor import endpoints_of
from monarch._actor.endpoint import Endpoint
from monarch._actor.signature import Method

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, NoReturn

    from monarch._core import Engine, Targets

__all__ = ["ActorHandle", "NotAnEndpoint", "Route", "as_endpoint"]


class Route:
    """Where the calls of one handle go. Made once for a placement and kept.

    Attributes:
        engine: this process's engine.
        targets: what the engine knows the receivers by, in order of rank.
        procs: their processes.
        actors: their actor ids.
        extent: labels and sizes of the (sliced) mesh, as `encode_extent` gives them.
        count: how many there are.
        stale: a receiver was replaced; the handle makes a new route.

    """

    __slots__ = ("__weakref__", "actors", "count", "engine", "extent", "procs", "stale", "targets")

    def __init__(
        self, engine: Engine, procs: Sequence[int], actors: Sequence[int], extent: bytes
    ) -> None:
        self.engine = engine
        self.procs = tuple(procs)
        self.actors = tuple(actors)
        self.targets: Targets = engine.targets(self.procs, self.actors)
        self.extent = extent
        self.count = len(self.procs)
        self.stale = False

    def only(self, index: int) -> Targets:
        """One of the receivers alone."""
        return self.engine.targets((self.procs[index],), (self.actors[index],))


class ActorHandle:
    """Base of what stands for spawned actors; endpoints are its attributes, made on first use.

    A kind of handle gives `_class`, `_route()`, `_gather()` and `_title()`.
    """

    _class: type

    def _route(self) -> Route:
        """Where calls go now; a route that is not stale is given again."""
        raise NotImplementedError

    def _gather(self, values: list[Any], errors: dict[int, BaseException] | None) -> Any:
        """What `call` gives for the values of all ranks: a mesh of values.

        `errors` are those of ranks that failed, whose values are None; None where none did.
        """
        raise NotImplementedError

    def _base_rank(self, rank: int) -> int:
        """The rank in the whole mesh of a rank of this (sliced) one."""
        return rank

    def _lost(self) -> Iterable[int]:
        """Ranks of this (sliced) mesh, as the whole one counts them, known to be lost."""
        return ()

    def _title(self) -> str:
        """How messages call the mesh, with its extent."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_class":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        cls = self._class
        method = endpoints_of(cls).get(name)
        if method is not None:
            found: Any = Endpoint(self, name, method)
        elif hasattr(cls, name):
            found = NotAnEndpoint(self, name)
        else:
            known = ", ".join(sorted(endpoints_of(cls))) or "none"
            raise AttributeError(
                f"{cls.__qualname__} has no endpoint {name!r}; its endpoints are {known}"
            )
        self.__dict__[name] = found
        return found


class NotAnEndpoint:
    """An attribute of an actor's class that is no endpoint: it cannot be had from afar."""

    __slots__ = ("_handle", "_name")

    def __init__(self, handle: ActorHandle, name: str) -> None:
        self._handle = handle
        self._name = name

    def __call__(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise RuntimeError(self._refusal())

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(self._refusal())

    def __repr__(self) -> str:
        return f"<{self._refusal()}>"

    def _refusal(self) -> str:
        cls = self._handle._class.__qualname__
        name = self._name
        return (
            f"{cls}.{name} is not an endpoint: decorate it with @endpoint, or call it once with "
            f"as_endpoint(actor.{name}).call(...)"
        )


def as_endpoint(
    not_an_endpoint: Any, *, propagate: object = None, explicit_response_port: bool = False
) -> Endpoint[Any, Any]:
    """An endpoint of a method that was not declared to be one: `as_endpoint(actor.method)`.

    Args:
        not_an_endpoint: the method, taken from a spawned actor.
        propagate: as for `endpoint`.
        explicit_response_port: as for `endpoint`.

    Raises:
        ValueError: it is no method of a spawned actor.

    """
    if isinstance(not_an_endpoint, Endpoint):
        return not_an_endpoint
    if not isinstance(not_an_endpoint, NotAnEndpoint):
        name = getattr(not_an_endpoint, "__name__", "method")
        raise ValueError(  # noqa: TRY004 - what programs expect of it
            f"as_endpoint takes a method of a spawned actor, as as_endpoint(actor.{name}), not "
            f"{not_an_endpoint!r}"
        )
    handle, name = not_an_endpoint._handle, not_an_endpoint._name
    function = getattr(handle._class, name)
    if not callable(function):
        raise ValueError(  # noqa: TRY004
            f"{handle._class.__qualname__}.{name} is no method: {function!r}"
        )
    method = Method(function, name, propagate=propagate, explicit=explicit_response_port)
    return Endpoint(handle, name, method)
