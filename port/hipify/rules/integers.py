"""The integer that a token stands for: a literal, or a constant of the file or the tree."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from port.hipify.constants import definitions, integer
from port.hipify.declarations import declares
from port.hipify.lexer import IDENT, NUMBER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from port.hipify.unit import Unit


class Integers:
    """The integers of one file: literals, its own constants, and those of the tree's others."""

    def __init__(self, unit: Unit, others: Mapping[bytes, int]) -> None:
        self._unit = unit
        self._others = others
        self._known: dict[bytes, int | None] = {}

    def at(self, index: int) -> int | None:
        """The value of the literal or constant at token `index`; None where it is neither."""
        unit = self._unit
        if unit.kind(index) == NUMBER:
            return integer(unit.text(index))
        if unit.kind(index) != IDENT or unit.text(index + 1) in (b"(", b"[", b".", b"->", b"::"):
            return None
        name = unit.text(index)
        if name not in self._known:
            self._known[name] = self._named(name)
        return self._known[name]

    def _named(self, name: bytes) -> int | None:
        own = self._own.get(name)
        if own is not None:
            places, values = own
        elif name in self._others:
            places, values = set[int](), {self._others[name]}
        else:
            return None
        if len(values) > 1 or any(
            place not in places and declares(self._unit, place) for place in self._unit.find(name)
        ):
            return None  # two meanings, or a variable of the same name somewhere
        return next(iter(values))

    @cached_property
    def _own(self) -> dict[bytes, tuple[set[int], set[int]]]:
        found: dict[bytes, tuple[set[int], set[int]]] = {}
        for at, value in definitions(self._unit):
            places, values = found.setdefault(self._unit.text(at), (set(), set()))
            places.add(at)
            values.add(value)
        return found
