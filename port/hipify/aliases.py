"""Other names of classes and namespaces: `using A = b::C;`, `typedef C A;`, base classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.unit import Unit

_CLASS_KEYS = frozenset({b"class", b"struct", b"union", b"enum"})
_REACH = 64  # tokens of a declaration that are looked at
_NO_NAMES = _CLASS_KEYS | {b"typename", b"const", b"public", b"private", b"protected", b"virtual"}


def gather(unit: Unit) -> frozenset[tuple[bytes, bytes]]:
    """(name, class or namespace that it leads to) pairs; a class leads to each of its bases."""
    return frozenset((*_named(unit), *_typedefs(unit), *_bases(unit)))


def is_template_parameter(unit: Unit, name: bytes) -> bool:
    """Whether `name` is a type parameter of some template of the file."""
    return any(
        unit.text(index - 1) in (b"typename", b"class")
        and unit.text(index - 2) in (b"<", b",")
        and unit.text(index + 1) in (b",", b">", b">>", b"=")
        for index in unit.find(name)
    )


def _named(unit: Unit) -> Iterator[tuple[bytes, bytes]]:
    """`using A = b::C;` and `namespace A = b::c;`."""
    for keyword in (b"using", b"namespace"):
        for index in unit.find(keyword):
            if unit.kind(index + 1) == IDENT and unit.text(index + 2) == b"=":
                meant, last = _type(unit, index + 3)
                if meant and unit.text(last) == b";":
                    yield unit.text(index + 1), meant


def _typedefs(unit: Unit) -> Iterator[tuple[bytes, bytes]]:
    for index in unit.find(b"typedef"):
        meant, last = _type(unit, index + 1)
        if meant and unit.kind(last) == IDENT and unit.text(last + 1) == b";":
            yield unit.text(last), meant


def _bases(unit: Unit) -> Iterator[tuple[bytes, bytes]]:
    for keyword in (b"class", b"struct"):
        for index in unit.find(keyword):
            name, last = unit.text(index + 1), index + 2
            if unit.kind(index + 1) != IDENT:
                continue
            last += unit.text(last) == b"final"
            while unit.text(last) in (b":", b","):
                meant, last = _type(unit, last + 1)
                if meant:
                    yield name, meant


def _type(unit: Unit, first: int) -> tuple[bytes, int]:
    """The last name of the type at `first`, template arguments left out, and the token after it."""
    name = b""
    at = first
    while at < first + _REACH:
        text = unit.text(at)
        if text == b"<":
            at = _after_angles(unit, at)
            continue
        if unit.kind(at) == IDENT:
            if name and unit.text(at - 1) != b"::":
                break
            if text not in _NO_NAMES:
                name = text
        elif text != b"::":
            break
        at += 1
    return name, at


def _after_angles(unit: Unit, opening: int) -> int:
    depth = 0
    for at in range(opening, opening + _REACH):
        text = unit.text(at)
        depth += (text == b"<") - (text.count(b">") if text.strip(b">") == b"" else 0)
        if depth <= 0:
            return at + 1
    return opening + _REACH
