"""`@endpoint` and `@concurrent_endpoint`: mark the methods of an actor that others may call.

The method stays a plain function, so that an actor calls its own endpoints directly
(`self.sum(1, 2)`); what callers get under the same name is an `Endpoint` of the mesh.
"""

# ruff: noqa: F811 - overloads, whose decorator is `typing`'s for type checkers alone
from __future__ import annotations

from monarch._actor.signature import Method

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, Concatenate, Literal, Protocol, TypeVar, overload

    from monarch._actor.endpoint import Endpoint
    from monarch._actor.generic import Generic, P, R_co
    from monarch._actor.ports import Port

    S = TypeVar("S")

    class EndpointProperty(Generic[P, R_co]):
        """What the decorators make of a method, as a type checker sees it."""

        def __get__(self, instance: object, owner: object = None) -> Endpoint[P, R_co]: ...

    class _Decorator(Protocol):
        @overload
        def __call__(
            self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R_co]]
        ) -> EndpointProperty[P, R_co]: ...
        @overload
        def __call__(
            self, method: Callable[Concatenate[Any, P], R_co]
        ) -> EndpointProperty[P, R_co]: ...

    class _PortDecorator(Protocol):
        def __call__(
            self, method: Callable[Concatenate[Any, Port[S], P], object]
        ) -> EndpointProperty[P, S]: ...

else:

    def overload(function: object) -> object:
        return function


__all__ = ["MARK", "concurrent_endpoint", "endpoint", "method_of"]

MARK = "__monarch_endpoint__"


@overload
def endpoint(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R_co]],
) -> EndpointProperty[P, R_co]: ...
@overload
def endpoint(method: Callable[Concatenate[Any, P], R_co]) -> EndpointProperty[P, R_co]: ...
@overload
def endpoint(
    *,
    propagate: object = None,
    explicit_response_port: Literal[False] = False,
    instrument: bool = True,
) -> _Decorator: ...
@overload
def endpoint(
    *, propagate: object = None, explicit_response_port: Literal[True], instrument: bool = True
) -> _PortDecorator: ...
def endpoint(
    method: Any = None,
    *,
    propagate: object = None,
    explicit_response_port: bool = False,
    instrument: bool = True,
) -> Any:
    """Let others call a method of an actor; it may be a plain or an `async` method.

    Args:
        method: the method; left out where the decorator is given options.
        propagate: how the result of a distributed call is shaped.
        explicit_response_port: the method gets, as its first argument, the `Port` to which it
            sends the reply, now or later; what it returns is ignored.
        instrument: kept with the endpoint for tools that record calls.

    Raises:
        TypeError: what is decorated is no plain method.

    """

    def mark(function: Any) -> Any:
        return _mark(
            function,
            "endpoint",
            propagate=propagate,
            explicit=explicit_response_port,
            instrument=instrument,
        )

    return mark if method is None else mark(method)


@overload
def concurrent_endpoint(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R_co]],
) -> EndpointProperty[P, R_co]: ...
@overload
def concurrent_endpoint(
    *,
    propagate: object = None,
    explicit_response_port: Literal[False] = False,
    instrument: bool = True,
) -> _Decorator: ...
@overload
def concurrent_endpoint(
    *, propagate: object = None, explicit_response_port: Literal[True], instrument: bool = True
) -> _PortDecorator: ...
def concurrent_endpoint(
    method: Any = None,
    *,
    propagate: object = None,
    explicit_response_port: bool = False,
    instrument: bool = True,
) -> Any:
    """As `endpoint`, for an `async` method that does not hold up the actor's next messages.

    Calls of one sender start in the order in which they were sent. What still runs when the actor
    stops is cancelled, and awaited before `__cleanup__`.

    Raises:
        ValueError: what is decorated is no `async` method, or is an endpoint already.

    """

    def mark(function: Any) -> Any:
        if method_of(function) is not None:
            raise ValueError(
                f"@concurrent_endpoint does not wrap @endpoint: {_title(function)} is an endpoint "
                "already; leave one of the two decorators"
            )
        found = _mark(
            function,
            "concurrent_endpoint",
            propagate=propagate,
            explicit=explicit_response_port,
            concurrent=True,
            instrument=instrument,
        )
        if not getattr(found, MARK).asynchronous:
            raise ValueError(
                "@concurrent_endpoint can only wrap async endpoints, and "
                f"{_title(function)} is none: write `async def`, or use @endpoint"
            )
        return found

    return mark if method is None else mark(method)


def method_of(function: object) -> Method | None:
    """What the decorators know of a function, None where it is no endpoint."""
    return getattr(function, MARK, None)


def _mark(function: Any, decorator: str, **options: Any) -> Any:
    if isinstance(function, (staticmethod, classmethod, property, type)) or not callable(function):
        raise TypeError(
            f"@{decorator} is for methods of an actor that take self, not for "
            f"{type(function).__name__} {_title(function)}"
        )
    name = getattr(function, "__name__", None)
    if name is None:
        raise TypeError(f"@{decorator} needs a method with a name, not {function!r}")
    try:
        setattr(function, MARK, Method(function, name, **options))
    except (AttributeError, TypeError):
        return _mark(_wrapped(function), decorator, **options)
    return function


def _wrapped(function: Any) -> Any:
    """A function around a callable that takes no attributes, as compiled ones do."""
    import functools  # noqa: PLC0415 - rarely needed

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def _title(function: object) -> str:
    inner = getattr(function, "__func__", function)
    return str(getattr(inner, "__qualname__", repr(inner)))
