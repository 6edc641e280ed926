"""Classes that go by value, pickled and unpickled once as long as nothing in them changes.

A class of the script is sent with all that it consists of, each time: its methods, what globals
these use, and so on. Here that is pickled by itself and kept, with a number; whoever has the class
under this number takes its own, and does not look at the bytes. On both sides what the class
consists of is compared with what it was then, part by part; a class in which anything else could
change unseen, as a list that a method uses or an object of another class, is not kept.
"""

# ruff: noqa: SLF001 - what cloudpickle sends with a class, and knows it by, has no public name
from __future__ import annotations

import os
import sys
from operator import is_
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GenericAlias,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)

from cloudpickle import cloudpickle

from monarch._actor.pickling import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

__all__ = ["goes_by_value", "keep", "restore"]

_MOST = 256  # classes, and parts of one that are no functions
_SCRIPT = frozenset({"__main__", "__mp_main__"})
_WHOLE = frozenset(  # of these nothing changes; what they refer to goes by reference
    {
        *(int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented)),
        *(range, CodeType, BuiltinFunctionType, GetSetDescriptorType, MemberDescriptorType),
        *(MethodDescriptorType, WrapperDescriptorType),
    }
)
_NOTHING = object()  # in an empty cell


class _Unsure(Exception):  # noqa: N818 - no error
    """Something in a class may change without this being seen."""


class _Kept:
    """A class as it was pickled: under which number, and what it consisted of."""

    __slots__ = ("data", "modules", "number", "parts", "tracker")

    def __init__(self, tracker: str, number: bytes, data: bytes, parts: list[Any]) -> None:
        self.tracker = tracker
        self.number = number
        self.data = data
        self.parts = parts
        self.modules = len(sys.modules)

    def holds(self, parts: list[Any]) -> bool:
        """Whether it still consists of the same."""
        mine = self.parts
        same = len(mine) == len(parts) and self.modules == len(sys.modules)
        return same and all(map(is_, mine, parts))


_kept: dict[type, _Kept] = {}


def goes_by_value(cls: type) -> bool:
    """Whether a class is none that the other side can import."""
    return cls.__module__ != "builtins" and not _by_reference(cls)


def keep(cls: type, dump: Callable[[type], bytes]) -> tuple[str, bytes, bytes] | None:
    """What `restore` takes for a class that goes by value; None for one that is not kept."""
    parts = _parts(cls)
    if parts is None:
        return None
    found = _kept.get(cls)
    if found is None or not found.holds(parts):
        data = dump(cls)
        tracker = cloudpickle._get_or_create_tracker_id(cls)
        found = _note(cls, _Kept(tracker, os.urandom(16), data, parts))
    return found.tracker, found.number, found.data


def restore(tracker: str, number: bytes, data: bytes) -> type:
    """The class, out of these bytes if it is not here, or not as it was then."""
    cls = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.get(tracker)
    found = None if cls is None else _kept.get(cls)
    if found is not None and found.number == number:
        parts = _parts(cls)
        if parts is not None and found.holds(parts):
            return cls  # type: ignore[no-any-return]
    made: type = loads(data)
    parts = _parts(made)
    if parts is not None:
        _note(made, _Kept(tracker, number, data, parts))
    return made


def _note(cls: type, kept: _Kept) -> _Kept:
    _kept.pop(cls, None)
    _kept[cls] = kept
    while len(_kept) > _MOST:
        del _kept[next(iter(_kept))]
    return kept


def _parts(cls: type) -> list[Any] | None:
    """All that a class consists of, in an order of its own; None where that is not sure."""
    walk = _Walk()
    try:
        walk.class_(cls)
    except Exception:  # noqa: BLE001 - classes may do anything when they are looked at
        return None
    return walk.parts


class _Walk:
    """Goes where pickling by value goes, and notes what it meets."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self._seen: set[int] = set()
        self._room = _MOST

    def each(self, values: Iterable[Any]) -> None:
        parts = self.parts
        for value in values:
            parts.append(value)
            kind = type(value)
            if kind in _WHOLE:
                continue
            at = id(value)
            if at in self._seen:
                continue
            self._seen.add(at)
            step = _STEPS.get(kind)
            if step is not None:
                step(self, value)
            elif isinstance(value, type):
                if not _by_reference(value):
                    self.class_(value)
            else:
                self._other(value)

    def class_(self, cls: type) -> None:
        """A class that goes by value."""
        self._seen.add(id(cls))
        self.each((type(cls), *cls.__bases__))
        members: Mapping[str, Any] = cls.__dict__
        if "_abc_impl" in members:
            registered = sys.modules["abc"]._get_dump(cls)[0]
            self.parts += sorted(registered, key=id)
            members = {k: v for k, v in members.items() if not k.startswith("_abc_")}
        self.parts += members
        self.each(members.values())

    def function(self, function: FunctionType) -> None:
        if _by_reference(function):
            return
        code = function.__code__
        self.parts.append(code)
        names = function.__globals__
        used = cloudpickle._extract_code_globals(code)  # what goes along with it
        self.each([names.get(name, _NOTHING) for name in used])
        self.each(
            (
                *(function.__defaults__, function.__kwdefaults__, function.__closure__),
                *(function.__annotations__, function.__dict__ or None, function.__doc__),
                *(function.__name__, function.__qualname__),
            )
        )

    def several(self, values: Any) -> None:
        self._room -= len(values)
        if self._room < 0:
            raise _Unsure
        self.each(values)

    def dictionary(self, values: dict[Any, Any]) -> None:
        self.several(values)
        self.each(values.values())

    def set_(self, values: Iterable[Any]) -> None:
        self.several(sorted(values, key=id))

    def cell(self, cell: CellType) -> None:
        try:
            self.each((cell.cell_contents,))
        except ValueError:
            self.parts.append(_NOTHING)

    def module(self, module: ModuleType) -> None:
        if sys.modules.get(module.__name__) is not module or _registered():
            raise _Unsure

    def _other(self, value: Any) -> None:
        kind = type(value)
        home, name = kind.__module__, kind.__qualname__
        if value is _NOTHING or (home, name) in _STEADY:
            return
        if home.startswith("monarch._actor."):  # endpoints of actors
            self.each(getattr(value, slot) for slot in getattr(kind, "__slots__", ()))
            self.each(getattr(value, "__dict__", {}).values())
        elif home == "dataclasses":
            if name == "Field":
                if value.metadata:
                    raise _Unsure
                self.each((value.type, value.default, value.default_factory))
        elif home == "typing":
            self.each((getattr(value, "__origin__", None), getattr(value, "__args__", None)))
        elif "enum" in sys.modules and isinstance(value, sys.modules["enum"].Enum):
            self.each((value._value_,))
        else:
            raise _Unsure


def _of(*names: str) -> Callable[[_Walk, Any], None]:
    return lambda walk, value: walk.each([getattr(value, name) for name in names])


# What is pickled by a name, or has nothing in it that changes.
_STEADY = frozenset(
    {
        *(("logging", "Logger"), ("logging", "RootLogger"), ("re", "Pattern")),
        *(("builtins", "object"), ("pathlib", "PosixPath")),
        *(("_collections", "_tuplegetter"), ("collections", "_tuplegetter")),  # as Python 3.12 says
    }
)
_STEPS: dict[type, Callable[[_Walk, Any], None]] = {
    FunctionType: _Walk.function,
    tuple: _Walk.several,
    list: _Walk.several,
    dict: _Walk.dictionary,
    set: _Walk.set_,
    frozenset: _Walk.set_,
    CellType: _Walk.cell,
    ModuleType: _Walk.module,
    property: _of("fget", "fset", "fdel", "__doc__"),
    staticmethod: _of("__func__"),
    classmethod: _of("__func__"),
    GenericAlias: _of("__origin__", "__args__"),
    type(int | str): _of("__args__"),
}


def _registered() -> bool:
    return bool(cloudpickle._PICKLE_BY_VALUE_MODULES - _SCRIPT)


def _by_reference(obj: Any) -> bool:
    """Whether the other side is to import it."""
    home = obj.__module__
    if home in _SCRIPT:
        return False
    found = getattr(sys.modules.get(home), obj.__qualname__, None)
    if found is obj and not _registered():
        return True
    return bool(cloudpickle._should_pickle_by_reference(obj))
