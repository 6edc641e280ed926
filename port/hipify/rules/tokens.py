"""What the rules share: tokens of one kind, the text of a literal, qualified names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT, STRING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.source import Source

_KEYWORDS = frozenset(
    (
        *(b"return", b"const", b"constexpr", b"static", b"typename"),
        *(b"case", b"inline", b"new", b"namespace"),
    )
)
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


def is_inner(source: Source, index: int) -> bool:
    """Whether a name is a member or qualified (`at::cuda::…`): another project's then.

    A leading `::` keeps it global.
    """
    before = source.text(index - 1)
    if before != b"::":
        return before in (b".", b"->")
    return source.kind(index - 2) == IDENT and source.text(index - 2) not in _KEYWORDS


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
