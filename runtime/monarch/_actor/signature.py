"""What an endpoint takes, read from its code: a good call does not load `inspect`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Method", "is_async"]

_VARARGS, _COROUTINE = 0x04, 0x80
_MANY = 1 << 30


def is_async(function: object) -> bool:
    """Whether calling the function gives a coroutine."""
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & _COROUTINE:
        return True
    # What asyncio and inspect mark, and functions behind a decorator that says so itself.
    return getattr(function, "_is_coroutine_marker", None) is not None


class Method:
    """One endpoint of a class: its function, how it runs, and which calls it takes.

    Attributes:
        function: the plain function.
        name: its name.
        explicit: its first parameter after `self` is the port to reply to.
        concurrent: the actor takes its next message while it runs.
        asynchronous: it is a coroutine function.
        propagate: how a distributed result is shaped; kept for the tensor engine.
        low: a call without keywords takes at least this many arguments …
        high: … and at most this many.

    """

    __slots__ = (
        "_good",
        "asynchronous",
        "concurrent",
        "explicit",
        "function",
        "high",
        "instrument",
        "low",
        "name",
        "names",
        "propagate",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        *,
        propagate: object = None,
        explicit: bool = False,
        concurrent: bool = False,
        instrument: bool = True,
    ) -> None:
        self.function = function
        self.name = name
        self.propagate = propagate
        self.explicit = explicit
        self.concurrent = concurrent
        self.instrument = instrument
        self.asynchronous = is_async(function)
        self._good: set[tuple[int, tuple[str, ...]]] = set()
        self.low, self.high, self.names = _counts(function, 2 if explicit else 1)

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Nothing, if the endpoint takes these arguments.

        Raises:
            TypeError: it does not; the text is what calling the function would say.

        """
        if not kwargs and self.low <= len(args) <= self.high:
            return
        shape = (len(args), tuple(kwargs))
        if shape in self._good:
            return
        import inspect  # noqa: PLC0415 - once for each shape of call that has keywords

        receivers = (None, None) if self.explicit else (None,)
        try:
            inspect.signature(self.function).bind(*receivers, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.text()}: {error}") from None
        self._good.add(shape)

    def text(self) -> str:
        """The parameters that a caller gives, as `(by: int = 1)`."""
        import inspect  # noqa: PLC0415 - only for messages

        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            return "(...)"
        skip = 2 if self.explicit else 1
        shown = list(signature.parameters.values())[skip:]
        return str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))


def _counts(function: Callable[..., Any], skip: int) -> tuple[int, int, tuple[str, ...]]:
    """Fewest and most positional arguments of a call without keywords, and their names.

    A function that gives no plain account of itself gets an empty range: `inspect` decides.
    """
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return 1, 0, ()
    count = code.co_argcount
    names: tuple[str, ...] = code.co_varnames[skip:count]
    defaults = getattr(function, "__defaults__", None) or ()
    named = getattr(function, "__kwdefaults__", None) or {}
    if code.co_kwonlyargcount > len(named):
        return 1, 0, names
    varargs = code.co_flags & _VARARGS
    if count < skip and not varargs:
        return 1, 0, names
    low = max(count - skip - len(defaults), 0)
    return low, _MANY if varargs else count - skip, names
