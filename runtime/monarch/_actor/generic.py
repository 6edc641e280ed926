"""`Generic` and its variables for type checkers, without loading `typing` when a program runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic, ParamSpec, TypeVar

    A = TypeVar("A")
    P = ParamSpec("P")
    R = TypeVar("R")
    R_co = TypeVar("R_co", covariant=True)
else:
    from types import GenericAlias

    class Generic:
        """Stands in for `typing.Generic`: `class X(Generic[R])` and `X[int]` work."""

        __slots__ = ()
        __class_getitem__ = classmethod(GenericAlias)

    A = P = R = R_co = object

__all__ = ["A", "Generic", "P", "R", "R_co"]
