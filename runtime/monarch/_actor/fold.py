"""Calls in other shapes: folded results, and messages whose replies go to a port."""

# ruff: noqa: SLF001 - endpoints, handles and futures know each other
from __future__ import annotations

from monarch._actor.calls import AllFuture
from monarch._actor.endpoint import Endpoint
from monarch._actor.generic import A, Generic, P, R
from monarch._actor.ports import Port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from monarch._actor.future import Future
    from monarch._core import Inbox

__all__ = ["Accumulator", "send"]


class Accumulator(Generic[P, R, A]):
    """Folds the results of a mesh as they come in: `combine(so_far, result)`, from `identity`.

    `Accumulator(actors.loss, 0.0, operator.add).accumulate(batch).get()`

    Raises:
        TypeError: the first argument is no endpoint, or the last cannot be called.

    """

    __slots__ = ("_combine", "_endpoint", "_identity")

    def __init__(self, endpoint: Endpoint[P, R], identity: A, combine: Callable[[A, R], A]) -> None:
        self._endpoint = _endpoint(endpoint, "Accumulator")
        if not callable(combine):
            raise TypeError(f"Accumulator: combine takes two values to one, {combine!r} cannot")
        self._identity = identity
        self._combine = combine

    def accumulate(self, *args: P.args, **kwargs: P.kwargs) -> Future[A]:
        """Call every actor of the mesh; gives the fold of their results in order of arrival.

        Raises:
            TypeError: the arguments do not fit, or cannot be pickled.

        """
        endpoint = self._endpoint
        inbox = endpoint._send(args, kwargs)
        found: Any = _Fold(inbox, endpoint, self._identity, self._combine)
        return found  # type: ignore[no-any-return]


def _endpoint(given: Any, asked: str) -> Endpoint[Any, Any]:
    if not isinstance(given, Endpoint):
        raise TypeError(f"{asked} takes an endpoint first, as actors.step, not {given!r}")
    return given


class _Fold(AllFuture[A]):
    __slots__ = ("_combine", "_so_far")

    _lazy = False

    def __init__(
        self,
        inbox: Inbox,
        endpoint: Endpoint[Any, Any],
        identity: Any,
        combine: Callable[[Any, Any], Any],
    ) -> None:
        super().__init__(inbox, endpoint)
        self._so_far = identity
        self._combine = combine

    def _take(self, _rank: int, value: Any) -> None:
        self._so_far = self._combine(self._so_far, value)

    def _whole(self, _errors: dict[int, BaseException] | None) -> Any:
        return self._so_far


def send(
    endpoint: Endpoint[Any, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    port: Port[Any] | None = None,
    selection: Literal["all", "choose"] = "all",
) -> None:
    """Send to the actors of a mesh; replies go to the port, if one is given.

    Raises:
        TypeError: this is no endpoint or no port, or the arguments do not fit or cannot be pickled.
        ValueError: the selection is neither "all" nor "choose".

    """
    if selection not in {"all", "choose"}:
        raise ValueError(f'selection is "all" or "choose", not {selection!r}')
    endpoint = _endpoint(endpoint, "send")
    if port is not None and not isinstance(port, Port):
        raise TypeError(f"send: port is a Port, as Channel.open() gives, or None, not {port!r}")
    data, buffers, sender = endpoint._pack(tuple(args), dict(kwargs))
    route = endpoint._current_route()
    if selection == "choose":
        targets, extent = endpoint._next_turn(route), b""
    else:
        targets, extent = route.targets, route.extent
    engine, name, flags = route.engine, endpoint._name, endpoint._flags
    if port is None:
        engine.cast(targets, name, data, buffers, sender, extent, flags)
    else:
        engine.cast(targets, name, data, buffers, sender, extent, flags, port._proc, port._inbox)
