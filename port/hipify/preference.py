"""Declarations of a project's own that are to go before HIP's of the same parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT
from port.hipify.rewrite import Edit

if TYPE_CHECKING:
    from port.hipify.unit import Unit

OWN = b"PORT_OWN"
_PIECE = "port_own"
_TYPE = frozenset((b"*", b"&", b"::"))


def before_hips(unit: Unit, index: int) -> Edit | None:
    """The attribute for the function whose name is at `index`; None where it has it already."""
    first = first_token(unit, index)
    if any(unit.text(each) == OWN for each in range(first - 1, index)):
        return None
    start = unit.tokens.starts[first]
    return Edit(start, start, OWN + b" ", compat=(_PIECE,))


def first_token(unit: Unit, index: int) -> int:
    """The first token of the declaration of the function whose name is at `index`."""
    first = index
    while first > 0:
        before = first - 1
        if unit.kind(before) != IDENT and unit.text(before) not in _TYPE:
            break
        if unit.directive_at(before) is not None:
            break
        first = before
    return first
