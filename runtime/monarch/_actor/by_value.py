"""Pickling by value: functions and classes that the other side cannot import."""

from __future__ import annotations

import io
from collections import ChainMap
from types import CodeType

import cloudpickle

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


def dumps_by_value(value: object, take: Callable[[Any], object] | None = None) -> bytes:
    """The value as pickle bytes; `take` gets its out-of-band buffers, if it is given."""
    whole = io.BytesIO()
    _Pickler(whole, protocol=5, buffer_callback=take).dump(value)
    return whole.getvalue()
