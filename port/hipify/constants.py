"""Named integers: what `#define N 75`, `constexpr int N = 75` and enumerators stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT, NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.unit import Unit

_SCOPED = frozenset({b"class", b"struct"})
_HEAD = 10  # tokens between `const` or `enum` and what follows the name


def integer(text: bytes) -> int | None:
    """The value of an integer literal of C, None for any other text."""
    digits = text.replace(b"'", b"").rstrip(b"uUlL").decode("ascii", "replace")
    try:
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            return int(digits, 8)
        return int(digits, 0)
    except ValueError:
        return None


def shared(unit: Unit) -> frozenset[tuple[bytes, int]]:
    """(name, value) of the constants of `unit` that other files can use; not those of functions."""
    return frozenset(
        (unit.text(at), value)
        for at, value in definitions(unit)
        if not unit.scopes.at(at).in_function
    )


def definitions(unit: Unit) -> Iterator[tuple[int, int]]:
    """(token of the name, value) of each constant that `unit` defines."""
    for macro in unit.macros:
        if macro.parameters is None:
            body = [i for i in macro.body[:4] if unit.text(i) not in (b"(", b")")]
            value = integer(unit.text(body[0])) if len(body) == 1 else None
            if value is not None:
                yield macro.token, value
    for keyword in (b"const", b"constexpr"):
        for index in unit.find(keyword):
            yield from _variables(unit, index)
    for index in unit.find(b"enum"):
        yield from _enumerators(unit, index)


def _variables(unit: Unit, index: int) -> Iterator[tuple[int, int]]:
    at = next((i for i in range(index + 2, index + _HEAD) if unit.text(i) in (b"=", b"{")), 0)
    while at:
        closer = unit.text(at + 2) == b"}" if unit.text(at) == b"{" else False
        value = integer(unit.text(at + 1)) if unit.kind(at + 1) == NUMBER else None
        end = at + 2 + closer
        if value is None or unit.kind(at - 1) != IDENT or unit.text(end) not in (b";", b","):
            return
        yield at - 1, value
        following = unit.text(end) == b"," and unit.text(end + 2) in (b"=", b"{")
        at = end + 2 if following else 0


def _enumerators(unit: Unit, index: int) -> Iterator[tuple[int, int]]:
    opening = next((i for i in range(index + 1, index + _HEAD) if unit.text(i) == b"{"), 0)
    closing = unit.partner(opening) if opening else None
    if closing is None or unit.text(index + 1) in _SCOPED:
        return
    value: int | None = 0
    at = opening + 1
    while at < closing and unit.kind(at) == IDENT:
        end = at + 1
        if unit.text(end) == b"=":
            value = integer(unit.text(end + 1)) if unit.kind(end + 1) == NUMBER else None
            end += 1
            while end < closing and unit.text(end) != b",":
                end += 1
            if end != at + 3:
                value = None
        if unit.text(end) not in (b",", b"}"):
            return
        if value is not None:
            yield at, value
            value += 1
        at = end + 1
