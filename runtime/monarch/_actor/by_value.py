"""Pickling by value: functions and classes that the other side cannot import."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections import ChainMap
from types import BuiltinFunctionType, CodeType, FunctionType

import cloudpickle

from monarch._actor.classes import goes_by_value, keep, restore
from monarch._actor.tensors import Reducer, tensor_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["dumps_by_value"]


def _with_filename(code: CodeType) -> Any:
    """A code object that keeps its file's name, so that tracebacks show the user's lines."""
    reduced = _reduce_code(code)
    arguments = tuple(code.co_filename if part == "<dynamic-code>" else part for part in reduced[1])
    return (reduced[0], arguments, *reduced[2:])


_reduce_code: Callable[[CodeType], tuple[Any, ...]] = cloudpickle.Pickler.dispatch_table[CodeType]
_table = ChainMap({CodeType: _with_filename}, cloudpickle.Pickler.dispatch_table)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    dispatch_table = _table
    keeps = True  # classes are kept, and so not part of the whole

    def __init__(self, whole: io.BytesIO, **options: Any) -> None:
        super().__init__(whole, protocol=5, **options)
        self.of_bases: dict[type, type] = {}  # metaclasses that no name leads to, and who has them
        self.tensor, self.reduce_tensor = tensor_type(), Reducer()

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is self.tensor:
            return self.reduce_tensor(obj)
        if isinstance(obj, type) and obj in self.of_bases:
            return type, (self.of_bases[obj],)
        if isinstance(obj, type) and self.keeps and goes_by_value(obj):
            kept = keep(obj, _dump_class)
            if kept is not None:
                return restore, kept
        if isinstance(obj, (type, FunctionType, BuiltinFunctionType)):
            _load_home(obj)
        if isinstance(obj, type):
            self._note_metaclass(obj)
        return super().reducer_override(obj)

    def _note_metaclass(self, cls: type) -> None:
        """Take the metaclass from a base that is imported, where it cannot be imported itself.

        So it is with classes that derive from compiled ones, as pybind11 makes them.
        """
        kind = type(cls)
        if kind is not type and goes_by_value(kind):
            for base in cls.__mro__[1:]:
                if type(base) is kind and not goes_by_value(base):
                    self.of_bases[kind] = base
                    return


class _Whole(_Pickler):
    keeps = False


def _dump_class(cls: type) -> bytes:
    whole = io.BytesIO()
    _Whole(whole).dump(cls)
    return whole.getvalue()


def _load_home(obj: Any) -> None:
    """Import the module that a class or function says it is of, if it can be.

    Compiled types often name another module than the one that was imported to get at them
    (`_decimal.Decimal` is `decimal.Decimal`). Once it is loaded, they go by reference.
    """
    home = getattr(obj, "__module__", None)
    if isinstance(home, str) and home not in sys.modules:
        with contextlib.suppress(Exception):
            importlib.import_module(home)


def dumps_by_value(value: object, take: Callable[[Any], object] | None = None) -> bytes:
    """The value as pickle bytes; `take` gets its out-of-band buffers, if it is given."""
    script = sys.modules.get("__mp_main__")  # what multiprocessing calls the script in a worker
    if script is not None and script.__name__ not in cloudpickle.list_registry_pickle_by_value():
        cloudpickle.register_pickle_by_value(script)
    whole = io.BytesIO()
    _Pickler(whole, buffer_callback=take).dump(value)
    return whole.getvalue()
