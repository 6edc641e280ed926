"""Whether what a file holds is what its class says, by the annotations of the class's body."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, NamedTuple

from monarch.errors import JobStateError


class _Misfit(NamedTuple):
    where: str
    wanted: Any
    value: Any


def check(cls: type, found: Mapping[str, Any], where: str, advice: str) -> None:
    """See that all fields that a class annotates are there, and are of their types.

    Those that it names in `_transient` are not stored. A type that cannot be had at run time is
    not looked at.

    Raises:
        JobStateError: one is not; names it by `where`, what was wanted, and says `advice`.

    """
    left_out = set(getattr(cls, "_transient", ()))
    types_by_name = annotated(cls)
    if dataclasses.is_dataclass(cls):  # it may annotate what is no field
        left_out = types_by_name.keys() - {field.name for field in dataclasses.fields(cls)}
    for name, wanted in types_by_name.items():
        if name in left_out:
            continue
        if name not in found:
            raise JobStateError(
                f'{where} lacks the field "{name}" ({_text(wanted)}) of a {cls.__qualname__}; '
                f"{advice}"
            )
        misfit = _misfit(found[name], wanted, f"{where}.{name}")
        if misfit is not None:
            raise JobStateError(
                f"{misfit.where} of a {cls.__qualname__} is {_shown(misfit.value)}, where "
                f"{_text(misfit.wanted)} was wanted; {advice}"
            )


def make(cls: type, found: Any, where: str, advice: str) -> Any:
    """A dataclass of what a file holds for it: all of its fields, and no other.

    Raises:
        JobStateError: it is no object, or a field is missing, of another type, or none of its own.

    """
    if not isinstance(found, Mapping):
        raise JobStateError(
            f"{where} is {_shown(found)}, where the fields of a {cls.__qualname__} were wanted; "
            f"{advice}"
        )
    known = {field.name for field in dataclasses.fields(cls)}
    others = sorted(set(found) - known)
    if others:
        raise JobStateError(
            f'{where} has "{others[0]}", which is no field of a {cls.__qualname__} (these are '
            f"{', '.join(sorted(known))}); {advice}"
        )
    check(cls, found, where, advice)
    made: Any = object.__new__(cls)
    for name, value in found.items():
        object.__setattr__(made, name, value)
    return made


def annotated(cls: type) -> dict[str, Any]:
    """The type of each field that a class or its bases annotate in their bodies."""
    import inspect  # noqa: PLC0415 - imports much, and only loading needs it

    found: dict[str, Any] = {}
    for one in reversed(cls.__mro__):
        names = vars(sys.modules[one.__module__]) if one.__module__ in sys.modules else {}
        for name, text in inspect.get_annotations(one).items():
            try:
                # An annotation of a class that was found: code of its module, as its body is.
                wanted = eval(text, dict(names)) if isinstance(text, str) else text  # noqa: S307
            except Exception:  # noqa: BLE001 - a name for type checkers alone
                wanted = Any
            if typing.get_origin(wanted) is not typing.ClassVar and wanted is not typing.ClassVar:
                found[name] = wanted
    return found


def _misfit(value: Any, wanted: Any, where: str) -> _Misfit | None:
    """What does not fit, at its own place within the value; None where all does."""
    if wanted is Any:
        return None
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    here = _Misfit(where, wanted, value)
    if origin in {typing.Union, types.UnionType}:
        misfits = [_misfit(value, one, where) for one in inner]
        if None in misfits:
            return None
        return next((one for one in misfits if one is not None and one.where != where), here)
    if origin is Literal:
        return None if value in inner else here
    base = types.NoneType if wanted is None else origin or wanted
    if not isinstance(base, type):
        return None
    if not _is(value, base):
        return here
    if issubclass(base, Mapping) and len(inner) > 1:
        pairs = [(key, inner[0], f"a key of {where}") for key in value]
        pairs += [(item, inner[1], f"{where}[{key!r}]") for key, item in value.items()]
    elif base is tuple and inner[-1:] != (...,):
        if inner and len(value) != len(inner):
            return here
        both = zip(value, inner, strict=False)  # of a bare tuple nothing is known
        pairs = [(item, one, f"{where}[{i}]") for i, (item, one) in enumerate(both)]
    elif inner and issubclass(base, (Sequence, AbstractSet)) and base is not str:
        pairs = [(item, inner[0], f"{where}[{i}]") for i, item in enumerate(value)]
    else:
        return None
    return next(filter(None, (_misfit(*pair) for pair in pairs)), None)


def _is(value: Any, base: type) -> bool:
    if isinstance(value, bool):
        return base in {bool, object}
    if base is float:
        return isinstance(value, (int, float))
    return isinstance(value, base)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text[:60]}{'…' if len(text) > 60 else ''} ({type(value).__name__})"


def _text(wanted: Any) -> str:
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted in {None, types.NoneType}:
        return "None"
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(_text(one) for one in inner)
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is not None and inner:
        return f"{_text(origin)}[{', '.join('...' if i is ... else _text(i) for i in inner)}]"
    return getattr(wanted, "__qualname__", None) or str(wanted)
