"""Calls in a token list: the name, its arguments, and the call that a token is an argument of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT, NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.source import Source

_OPENERS = (b"(", b"[", b"{")
_CLOSERS = (b")", b"]", b"}")
_ENDS_TEMPLATE = frozenset((b";", b"{", b"}", b"&&", b"||", b"<<<", b"=", b"#"))
_TEMPLATE_TOKENS = 200
_LOOK_BACK = 400


@dataclass(frozen=True, slots=True)
class Call:
    """A name, the indexes of its parentheses, and the token ranges of its arguments."""

    name: int
    open: int
    close: int
    arguments: tuple[range, ...]


def call_at(source: Source, name: int) -> Call | None:
    """The call whose name is token `name`, template arguments allowed; None for no call.

    The definition of a macro is none.
    """
    if source.text(name - 1) == b"define":
        return None
    opening = name + 1
    if source.text(opening) == b"<":
        end = template_end(source, opening)
        if end is None:
            return None
        opening = end + 1
    return _call(source, name, opening)


def calls(source: Source, name: bytes) -> Iterator[Call]:
    """Every call of `name`."""
    for index in source.find(name):
        call = call_at(source, index)
        if call is not None:
            yield call


def is_plain(source: Source, call: Call) -> bool:
    """Whether the arguments can be counted: no pack is expanded among them."""
    return all(source.text(index) != b"..." for part in call.arguments for index in part)


def _call(source: Source, name: int, opening: int) -> Call | None:
    if source.text(opening) != b"(":
        return None
    closing = source.partner(opening)
    if closing is None:
        return None
    arguments = []
    first = index = opening + 1
    while index < closing:
        text = source.text(index)
        if text in _OPENERS:
            index = max(source.partner(index) or index, index)
        elif text == b"<" and source.kind(index - 1) == IDENT:
            index = template_end(source, index) or index
        elif text == b",":
            arguments.append(range(first, index))
            first = index + 1
        index += 1
    if first < closing or arguments:
        arguments.append(range(first, closing))
    return Call(name, opening, closing, tuple(arguments))


def template_end(source: Source, opening: int) -> int | None:
    """Index of the token that closes the `<` at `opening`, where it can be a template's list."""
    angles = 0
    index = opening
    last = opening + _TEMPLATE_TOKENS
    while index < last:
        text = source.text(index)
        if not text or text in _CLOSERS or text in _ENDS_TEMPLATE:
            return None
        if text in _OPENERS:
            index = max(source.partner(index) or last, index)
        elif text == b"<":
            angles += 1
        elif text in (b">", b">>", b">>>"):
            angles -= len(text)
            if angles <= 0:
                plain = angles == 0 and source.kind(index + 1) != NUMBER
                return index if plain else None
        index += 1
    return None


def enclosing_call(source: Source, index: int) -> Call | None:
    """The innermost call that token `index` is an argument of, looking back a short way."""
    at = index - 1
    while at > max(0, index - _LOOK_BACK):
        text = source.text(at)
        if text in _CLOSERS:
            at = min(source.partner(at) or 0, at)
        elif text in _OPENERS:
            named = text == b"(" and source.kind(at - 1) == IDENT
            return _call(source, at - 1, at) if named else None
        elif text == b";":
            return None
        at -= 1
    return None
