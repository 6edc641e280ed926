"""What an endpoint takes, read from its code: a good call does not load `inspect`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from monarch._actor.annotations import Checks

__all__ = ["Method", "is_async"]

_VARARGS, _COROUTINE = 0x04, 0x80
_MANY = 1 << 30
_ALWAYS = (1, 0)  # an empty range: each call is checked
_REMEMBERED = 256


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
        low: a call without keywords needs no `check` with at least this many arguments …
        high: … and at most this many; none is enough where annotations are checked.

    """

    __slots__ = (
        "_checks",
        "_good",
        "_range",
        "_read",
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
        self._good: set[tuple[object, ...]] = set()
        self.low, self.high, self.names = _counts(function, 2 if explicit else 1)
        self._range = (self.low, self.high)
        self._checks: Checks | None = None
        self._read = not _annotated(function)
        if not self._read:
            self.low, self.high = _ALWAYS

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Nothing, if the endpoint takes these arguments.

        Raises:
            TypeError: their number or a name is wrong, or one is of another type than annotated;
                the text is what calling the function would say.

        """
        # It depends on their number, names and types alone: each kind of call is looked at once.
        if kwargs:
            names = tuple(kwargs)
            shape = (*map(type, args), names, *map(type, kwargs.values()))
        else:
            shape = (*map(type, args),)
        if shape not in self._good:
            self._check(args, kwargs)
            if len(self._good) < _REMEMBERED:
                self._good.add(shape)

    def _check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        low, high = self._range
        if kwargs or not low <= len(args) <= high:
            import inspect  # noqa: PLC0415 - once for each kind of call that has keywords

            receivers = (None, None) if self.explicit else (None,)
            try:
                inspect.signature(self.function).bind(*receivers, *args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.name}{self.text()}: {error}") from None
        if not self._read:
            # Only now: annotations may name what is defined after the class.
            from monarch._actor.annotations import checks_of  # noqa: PLC0415 - as above

            self._checks = checks_of(self.function, 2 if self.explicit else 1)
            self._read = True
            self.low, self.high = self._range if self._checks is None else _ALWAYS
        fault = None if self._checks is None else self._checks.fault(args, kwargs)
        if fault is not None:
            raise TypeError(f"{self.name}{self.text()}: {fault}")

    def text(self) -> str:
        """The parameters that a caller gives, as `(by: int = 1)`."""
        import inspect  # noqa: PLC0415 - only for messages

        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            return "(...)"
        skip = 2 if self.explicit else 1
        shown = [
            one.replace(annotation=_Bare(one.annotation)) if type(one.annotation) is str else one
            for one in list(signature.parameters.values())[skip:]
        ]
        return str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))


class _Bare(str):
    """An annotation that is a text, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _counts(function: Callable[..., Any], skip: int) -> tuple[int, int, tuple[str, ...]]:
    """Fewest and most positional arguments of a call without keywords, and their names.

    A function that gives no plain account of itself gets an empty range: `inspect` decides.
    """
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return *_ALWAYS, ()
    count = code.co_argcount
    names: tuple[str, ...] = code.co_varnames[skip:count]
    defaults = getattr(function, "__defaults__", None) or ()
    named = getattr(function, "__kwdefaults__", None) or {}
    if code.co_kwonlyargcount > len(named):
        return *_ALWAYS, names
    varargs = code.co_flags & _VARARGS
    if count < skip and not varargs:
        return *_ALWAYS, names
    low = max(count - skip - len(defaults), 0)
    return low, _MANY if varargs else count - skip, names


def _annotated(function: Callable[..., Any]) -> bool:
    """Whether a function may have annotated parameters; cheap, and evaluates nothing."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return False
    if hasattr(function, "__annotate__"):
        return function.__annotate__ is not None
    return any(name != "return" for name in function.__annotations__)
