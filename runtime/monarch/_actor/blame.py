"""Which part of a value cannot be pickled."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["blame", "blame_call"]

_DEPTH = 12
_LIMIT = 2000


def blame(value: object, root: str, error: Exception) -> tuple[str, Exception]:
    """The path to the innermost part that fails, from `root`, and the error that it gives.

    Args:
        value: what could not be pickled.
        root: how it is called; the path starts with it.
        error: what pickling the whole of it raised.

    """
    budget = [_LIMIT]
    return _search(value, root, error, budget, 0, set())


def blame_call(
    call: Any, root: str, names: tuple[str, ...], error: Exception
) -> tuple[str, Exception]:
    """As `blame`, for `(args, kwargs)` of a call to `root` with parameters of these names."""
    args, kwargs = call
    given = [
        (f"argument {names[place]!r}" if place < len(names) else f"argument {place + 1}", value)
        for place, value in enumerate(args)
    ]
    given += [(f"argument {name!r}", value) for name, value in kwargs.items()]
    for called, value in given:
        cause = _failure(value)
        if cause is not None:
            path, cause = blame(value, called, cause)
            return f"{root}: {path}", cause
    return root, error


def _search(
    value: object, path: str, error: Exception, budget: list[int], depth: int, seen: set[int]
) -> tuple[str, Exception]:
    if depth >= _DEPTH or id(value) in seen:
        return path, error
    seen.add(id(value))
    for step, part in _parts(value):
        budget[0] -= 1
        if budget[0] < 0:
            break
        cause = _failure(part)
        if cause is not None:
            return _search(part, path + step, cause, budget, depth + 1, seen)
    return path, error


def _failure(value: object) -> Exception | None:
    from monarch._actor.by_value import dumps_by_value  # noqa: PLC0415 - only on the way out

    try:
        dumps_by_value(value, _drop)
    except Exception as error:  # noqa: BLE001 - what a part raises is what is looked for
        return error
    return None


def _drop(_buffer: object) -> None:
    """Take a buffer out of band."""


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """What a value holds, each with the step that leads to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"[{_short(key)}]", part
        for key in value:
            yield f" (key {_short(key)})", key
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield f"[{place}]", part
    elif isinstance(value, (set, frozenset)):
        for part in value:
            yield f" (element {_short(part)})", part
    else:
        yield from _state(value)


def _state(value: object) -> Iterator[tuple[str, object]]:
    code = getattr(value, "__code__", None)
    cells = getattr(value, "__closure__", None)
    if code is not None:
        for name, cell in zip(code.co_freevars, cells or (), strict=False):
            try:
                yield f" (its variable {name!r})", cell.cell_contents
            except ValueError:
                continue
        names = getattr(value, "__globals__", {})
        for name in code.co_names:
            if name in names and getattr(value, "__module__", None) in {"__main__", "__mp_main__"}:
                yield f" (its global {name!r})", names[name]
        for place, part in enumerate(getattr(value, "__defaults__", None) or ()):
            yield f" (its default {place + 1})", part
        return
    kind = type(value)
    if kind.__reduce_ex__ is not object.__reduce_ex__ or kind.__reduce__ is not object.__reduce__:
        try:
            reduced = value.__reduce_ex__(5)
        except Exception:  # noqa: BLE001 - it is the culprit itself
            return
        if isinstance(reduced, tuple):
            for part in reduced[1:]:
                yield "", part
        return
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, type(__import__("sys"))):
        yield ".__self__", owner
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict):
        for name, part in fields.items():
            yield f".{name}", part
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield f".{name}", getattr(value, name)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
