"""What annotations say of an endpoint's arguments, as far as a call is checked against it.

Only builtin scalars and containers are checked, alone or in unions; everything else is up to the
method, as in any Python call. A value of another class is taken where it can stand in: whatever
counts as an integer is an `int`, arrays are iterable.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Checks", "checks_of"]


class Check:
    """The classes that a parameter takes, and what stands in for them."""

    __slots__ = ("_takes", "_text", "exact")

    def __init__(self, classes: list[type], *, optional: bool) -> None:
        self.exact = {*classes, type(None)} if optional else set(classes)
        self._takes = [_STANDS_IN[one] for one in classes if one is not type(None)]
        self._text = " or ".join("None" if c is type(None) else c.__name__ for c in classes)

    def fault(self, value: object) -> str | None:
        """What is wrong with an argument, None if it fits."""
        if any(takes(value) for takes in self._takes):
            return None
        shown = repr(value)
        shown = f" {shown}" if len(shown) <= 60 else ""
        return f"takes {self._text}, not {type(value).__name__}{shown}"


class Checks:
    """The checks of one endpoint, by place and by name."""

    __slots__ = ("_named", "_placed")

    def __init__(self, placed: list[tuple[str, Check | None]], named: dict[str, Check]) -> None:
        self._placed = placed
        self._named = named

    def fault(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """What is wrong with the first argument that does not fit, None if all do."""
        for value, (name, check) in zip(args, self._placed, strict=False):
            if check is not None and type(value) not in check.exact:
                said = check.fault(value)
                if said is not None:
                    return f"{name!r} {said}"
        for name, value in kwargs.items():
            check = self._named.get(name)
            if check is not None and type(value) not in check.exact:
                said = check.fault(value)
                if said is not None:
                    return f"{name!r} {said}"
        return None


def checks_of(function: Callable[..., Any], skip: int) -> Checks | None:
    """The checks of a function's parameters after the first `skip`; None where there are none."""
    code: Any = getattr(function, "__code__", None)
    found = _annotations(function)
    space = getattr(function, "__globals__", {})
    optional = _optional(function, code)
    by_place: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    by_name: tuple[str, ...] = code.co_varnames[
        code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount
    ]
    checks: dict[str, Check] = {}
    for name in found.keys() & ({*by_place, *by_name} - set(by_place[:skip])):
        classes = _classes(found[name], space)
        if classes:
            checks[name] = Check(classes, optional=name in optional)
    if not checks:
        return None
    placed = [(name, checks.get(name)) for name in by_place[skip:]]
    return Checks(placed, {name: checks[name] for name in by_name if name in checks})


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    import sys  # noqa: PLC0415 - once for each endpoint

    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations  # noqa: PLC0415 - as above

        return get_annotations(function, format=Format.FORWARDREF)
    return dict(function.__annotations__)


def _optional(function: Callable[..., Any], code: Any) -> set[str]:
    """Parameters whose default is None: they take it, whatever their annotation says."""
    defaults = getattr(function, "__defaults__", None) or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    named = getattr(function, "__kwdefaults__", None) or {}
    pairs = [*zip(names, defaults, strict=True), *named.items()]
    return {name for name, default in pairs if default is None}


def _classes(annotation: object, space: dict[str, Any]) -> list[type] | None:
    """The classes that an annotation names; None unless all of them are checked."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, space)  # noqa: S307 - what the annotation means
        except Exception:  # noqa: BLE001 - a name for type checkers alone
            return None
    if annotation is None:
        return [type(None)]
    if isinstance(annotation, type) and (annotation in _STANDS_IN or annotation is type(None)):
        return [annotation]
    from types import UnionType  # noqa: PLC0415 - once for each endpoint
    from typing import Union, get_args, get_origin  # noqa: PLC0415 - as above

    if get_origin(annotation) not in {Union, UnionType}:
        return None
    found: list[type] = []
    for part in get_args(annotation):
        classes = _classes(part, space)
        if classes is None:
            return None
        found += classes
    return found


def _text(value: object) -> bool:
    return isinstance(value, str)


def _bytes(value: object) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview))


def _whole(value: object) -> bool:
    return hasattr(type(value), "__index__")


def _real(value: object) -> bool:
    return hasattr(type(value), "__float__") or _whole(value)


def _truth(value: object) -> bool:
    return value is not None and hasattr(type(value), "__bool__")


def _many(value: object) -> bool:
    return hasattr(type(value), "__iter__") and not isinstance(value, (str, bytes, bytearray, dict))


def _mapping(value: object) -> bool:
    return hasattr(type(value), "keys") and hasattr(type(value), "__getitem__")


_STANDS_IN: dict[type, Callable[[object], bool]] = {
    str: _text,
    bytes: _bytes,
    int: _whole,
    float: _real,
    bool: _truth,
    list: _many,
    tuple: _many,
    set: _many,
    frozenset: _many,
    dict: _mapping,
}
