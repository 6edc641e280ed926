"""What the rules share: tokens of one kind and the text of a literal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.lexer import STRING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.source import Source

_OPENING = re.compile(rb'(?:u8|[uUL])?"')


def word(source: Source, index: int) -> str:
    """Token `index` as text."""
    return source.text(index).decode("utf-8", "replace")


def of_kind(source: Source, kind: int) -> Iterator[int]:
    """Indexes of the tokens of one kind, in order."""
    kinds = source.tokens.kinds.tobytes()
    index = kinds.find(kind)
    while index >= 0:
        yield index
        index = kinds.find(kind, index + 1)


def literal(source: Source, index: int) -> str | None:
    """The text of the plain string literal at `index`, escapes as written; None for others."""
    text = source.text(index)
    opening = _OPENING.match(text)
    if opening is None or source.kind(index) != STRING or not text.endswith(b'"', opening.end()):
        return None
    body = text[opening.end() : -1]
    if (len(body) - len(body.rstrip(b"\\"))) % 2:
        return None
    return body.decode("utf-8", "replace")
