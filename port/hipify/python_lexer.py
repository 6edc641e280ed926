"""The same for Cython and Python: `#` comments, and strings in one or three quotes."""

from __future__ import annotations

import re

from port.hipify.lexer import IDENT, NUMBER, PUNCT, STRING, UTF8_BOM, Tokens

SUFFIXES = (".pyx", ".pxd", ".pxi", ".py")

_GROUPS = (
    (0, rb"\#[^\n]*"),
    (STRING, rb"[A-Za-z]{0,2}(?:'''|\"\"\")"),
    (STRING, rb"[A-Za-z]{0,2}[\"']"),
    (IDENT, rb"[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*"),
    (NUMBER, rb"\.?[0-9][A-Za-z0-9_.]*"),
    (PUNCT, rb"->|\*\*|//|[-+*/%&|^<>=!:]=|<<|>>|[^ \t\r\n\v\f]"),
)
_TOKEN = re.compile(
    rb"[ \t\r\n\v\f]*(?:" + b"|".join(rb"(%b)" % text for _, text in _GROUPS) + rb")"
)
_KIND = (0, *(kind for kind, _ in _GROUPS))
_STRINGS = (2, 3)


def lex(data: bytes) -> Tokens:
    """Split Python or Cython source into tokens; never fails, in time linear in the size."""
    tokens = Tokens()
    position = len(UTF8_BOM) if data.startswith(UTF8_BOM) else 0
    while match := _TOKEN.match(data, position):
        group = match.lastindex or 0
        start, position = match.span(group)
        if group in _STRINGS:
            opener = match[group]
            quote = opener[-3:] if group == _STRINGS[0] else opener[-1:]
            position = _string_end(data, position, quote)
        if _KIND[group]:
            tokens.add(_KIND[group], start, position)
    return tokens


def _string_end(data: bytes, position: int, quote: bytes) -> int:
    """The end of a string; one in single quotes that is not closed ends with its line."""
    while True:
        close = data.find(quote, position)
        line_end = data.find(b"\n", position) if len(quote) == 1 else -1
        if close < 0 or 0 <= line_end < close:
            return line_end if line_end >= 0 else len(data)
        backslashes = close - len(data[position:close].rstrip(b"\\")) - position
        position = close + len(quote)
        if backslashes % 2 == 0:
            return position
        position = close + 1
