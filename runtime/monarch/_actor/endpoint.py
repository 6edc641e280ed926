"""`Endpoint`: what a caller has of a method of remote actors, and the ways to call it."""

# ruff: noqa: SLF001 - endpoints, handles and futures know each other
from __future__ import annotations

from monarch._actor.calls import AllFuture, OneFuture, StreamFuture
from monarch._actor.current import current
from monarch._actor.future import seconds
from monarch._actor.generic import Generic, P, R_co
from monarch._actor.pickling import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal, NoReturn

    from monarch._actor.future import Future
    from monarch._actor.handle import ActorHandle, Route
    from monarch._actor.signature import Method
    from monarch._core import Inbox
    from monarch._shape.value_mesh import ValueMesh

__all__ = ["EXPLICIT", "Endpoint"]

EXPLICIT = 16


class Endpoint(Generic[P, R_co]):
    """One method of the actors of a mesh.

    Arguments are checked against the method's signature and pickled before anything is sent, so
    that a wrong call raises where it is made: `TypeError` for a wrong number or name, and for an
    argument that cannot be pickled, with the path to its culprit.
    """

    __slots__ = (
        "_collect",
        "_flags",
        "_handle",
        "_method",
        "_name",
        "_quick",
        "_route",
        "_single",
        "_timeout",
        "_turn",
    )

    def __init__(self, handle: ActorHandle, name: str, method: Method) -> None:
        self._handle = handle
        self._name = name
        self._method = method
        self._flags = EXPLICIT if method.explicit else 0
        self._renew()
        self._timeout: float | None = None
        self._collect = False
        self._turn = -1

    def call_one(self, *args: P.args, **kwargs: P.kwargs) -> Future[R_co]:
        """Call the only actor of the mesh.

        Raises:
            ValueError: the mesh has not exactly one actor.
            TypeError: the arguments do not fit, or cannot be pickled.

        """
        if self._route.stale or not self._single:
            self._check_single()
        method = self._method
        if kwargs or not method.low <= len(args) <= method.high:
            method.check(args, kwargs)
        request = current.get()
        # What pickle does by itself goes in one step; it gives None for the rest.
        inbox = self._quick.call(args, kwargs, 0 if request is None else request.actor)
        return OneFuture(self._send_whole(args, kwargs) if inbox is None else inbox, self)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Future[ValueMesh[R_co]]:
        """Call every actor of the mesh; gives the mesh of their results.

        The first error of any rank is the error of the whole, as soon as it is there;
        `options(on_error="collect")` keeps the results of the others.

        Raises:
            TypeError: the arguments do not fit, or cannot be pickled.

        """
        return AllFuture(self._send(args, kwargs), self)

    def choose(self, *args: P.args, **kwargs: P.kwargs) -> Future[R_co]:
        """Call one actor of the mesh; each in its turn.

        Raises:
            ValueError: the mesh is empty.
            TypeError: the arguments do not fit, or cannot be pickled.

        """
        data, buffers, sender = self._pack(args, kwargs)
        route = self._current_route()
        targets = self._next_turn(route)
        return OneFuture(
            route.engine.call(targets, self._name, data, buffers, sender, b"", self._flags), self
        )

    def broadcast(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Send to every actor of the mesh and go on; an error there reaches the mesh's owner.

        Raises:
            TypeError: the arguments do not fit, or cannot be pickled.

        """
        sender = self._begin(args, kwargs)
        if not self._quick.cast(args, kwargs, sender):
            data, buffers = dumps((args, kwargs), self, self._method.names)
            route = self._route
            route.engine.cast(
                route.targets, self._name, data, buffers, sender, route.extent, self._flags
            )

    def stream(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[Future[R_co]]:
        """Call every actor of the mesh; gives a future for each, in the order of their answers.

        Raises:
            TypeError: the arguments do not fit, or cannot be pickled.

        """
        inbox = self._send(args, kwargs)
        return iter([StreamFuture(inbox, self, place) for place in range(inbox.expected)])

    def options(
        self, *, timeout: float | None = None, on_error: Literal["raise", "collect"] = "raise"
    ) -> Endpoint[P, R_co]:
        """The same endpoint with other terms for its calls.

        Args:
            timeout: seconds from the call until it fails with `TimeoutError`; what it started is
                cancelled on the far side: requests that wait there are dropped, coroutines are
                cancelled, plain methods interrupted.
            on_error: "collect" lets `call` give its values also when ranks failed: the `ValueMesh`
                holds the error of each rank that did.

        Raises:
            TypeError: the timeout is no number.
            ValueError: the timeout is negative, or `on_error` is neither.

        """
        limit = None if timeout is None else seconds(timeout)
        if on_error not in {"raise", "collect"}:
            raise ValueError(f'on_error is "raise" or "collect", not {on_error!r}')
        changed: Endpoint[P, R_co] = Endpoint(self._handle, self._name, self._method)
        changed._timeout = limit
        changed._collect = on_error == "collect"
        return changed

    def rref(self, *_args: P.args, **_kwargs: P.kwargs) -> NoReturn:
        """Distributed tensors as results are not part of this release.

        Raises:
            NotImplementedError: always.

        """
        raise NotImplementedError(
            f"{self}.rref: distributed tensors are not part of this release; use .call"
        )

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        """Endpoints are called through an adverb.

        Raises:
            TypeError: always.

        """
        raise TypeError(
            f"{self} is an endpoint of remote actors: say how to call it, as .call_one(...) for "
            "the only actor of a mesh, .call(...) for all of them, .broadcast(...) without an "
            "answer. Inside the actor, self.method(...) is a plain call"
        )

    def __str__(self) -> str:
        return f"{self._handle._class.__qualname__}.{self._name}"

    def __repr__(self) -> str:
        return f"<endpoint {self._title()}>"

    def __reduce__(self) -> tuple[object, ...]:
        on_error = "collect" if self._collect else "raise"
        terms = {"timeout": self._timeout, "on_error": on_error}
        return _rebuild, (self._handle, self._name, self._method.explicit, terms)

    def _title(self) -> str:
        """The endpoint and the mesh, for messages."""
        return f"{self} on {self._handle._title()}"

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Who sends, once the route is up to date and the arguments fit."""
        if self._route.stale:
            self._renew()
        method = self._method
        if kwargs or not method.low <= len(args) <= method.high:
            method.check(args, kwargs)
        request = current.get()
        return 0 if request is None else request.actor

    def _send(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inbox:
        """Send to all; gives the inbox of the answers."""
        sender = self._begin(args, kwargs)
        inbox = self._quick.call(args, kwargs, sender)
        return self._send_whole(args, kwargs) if inbox is None else inbox

    def _send_whole(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inbox:
        """As `_send`, for arguments that pickle alone does not do, or not in one piece."""
        data, buffers, sender = self._pack(args, kwargs)
        route = self._route
        return route.engine.call(
            route.targets, self._name, data, buffers, sender, route.extent, self._flags
        )

    def _pack(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[bytes, list[Any] | None, int]:
        """The arguments, checked and pickled, and who sends them."""
        sender = self._begin(args, kwargs)
        data, buffers = dumps((args, kwargs), self, self._method.names)
        return data, buffers, sender

    def _current_route(self) -> Route:
        if self._route.stale:
            self._renew()
        return self._route

    def _renew(self) -> None:
        """Take the handle's route: the first, or the one after a receiver was replaced."""
        self._route = route = self._handle._route()
        self._single = route.count == 1
        from monarch._core import Sender  # noqa: PLC0415 - native code loads on first use

        self._quick = Sender(route.engine, route.targets, self._name, route.extent, self._flags)

    def _next_turn(self, route: Route) -> Any:
        if not route.count:
            raise ValueError(f"{self._title()}: choose needs an actor, and the mesh has none")
        if self._turn < 0:
            import _random  # noqa: PLC0415 - once for each endpoint that is chosen from

            self._turn = int(_random.Random().random() * route.count)
        self._turn = turn = (self._turn + 1) % route.count
        return route.only(turn)

    def _check_single(self) -> None:
        count = self._current_route().count
        if count != 1:
            raise ValueError(
                f"{self._title()}: call_one is for a mesh of one actor, and this one has {count}; "
                "slice it down to one, or use call (all of them) or choose (any one)"
            )


def _rebuild(
    handle: ActorHandle, name: str, explicit: bool, terms: dict[str, Any]
) -> Endpoint[Any, Any]:
    from monarch._actor.handle import as_endpoint  # noqa: PLC0415 - it is above this module

    found = as_endpoint(getattr(handle, name), explicit_response_port=explicit)
    return found.options(**terms)
