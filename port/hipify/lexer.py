"""Bytes in, tokens out: a C++/CUDA lexer that is exact to the byte and cannot fail.

Comments, white space and line splices (backslash-newline) lie between tokens; a token that a
splice cuts keeps its physical range. Whatever matches nothing else is a one-byte punctuator, so
every input has tokens, and what is not closed ends where a compiler ends it: a comment or raw
string at the end of the file, a plain literal at its line.

One compiled expression finds the plain forms; the rare ones (directives, splices, raw strings) are
measured by `_special`. No expression here repeats a group without a bound unless possessively: the
matcher keeps a state for each repetition it may take back, which a hostile line of 10 MB would turn
into gigabytes.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import NamedTuple, overload

IDENT, PUNCT, NUMBER, STRING, CHAR, RAW, HEADER = range(1, 8)
"""Token kinds. RAW is a raw string literal, HEADER the name in `#include <…>` or `"…"`."""

UTF8_BOM = b"\xef\xbb\xbf"

_SPECIAL = RAW  # in the main expression, which matches no raw string

_WORD = rb"[A-Za-z0-9_$\x80-\xff]"
_PLAIN_NAME = (
    rb"(?!__has_include)[A-Za-z_$\x80-\xff]" + _WORD + rb"*(?![A-Za-z0-9_$\x80-\xff\"'\\])"
)
_PLAIN_PUNCT = (
    rb"[(),;{}\[\]~?]|::|->\*?|<<[<=]?|>>[>=]?|&&|\|\||\+\+|--|<=>?|[-+*%&|^>=!]=|/="
    rb"|[-+*&|^<>=!:]|%(?!:)|\.\.\.|\.(?![0-9])|/(?![/*\\])"
)
_PLAIN_NUMBER = rb"\.?[0-9][A-Za-z0-9_.$\x80-\xff]*(?<![eEpP])(?![A-Za-z0-9_.$\x80-\xff'\\])"
_ESCAPE = rb"\\[^\n \t\r\\]|\\\\(?![ \t\r\n])"
_LITERAL = rb"(?:u8|[uUL])?%b[^%b\\\n]*+(?:(?:%b)[^%b\\\n]*+)*+%b"
# In the order of the kinds, so that the number of a group is the kind of token it matches.
_GROUPS = (
    _PLAIN_NAME,
    _PLAIN_PUNCT,
    _PLAIN_NUMBER,
    _LITERAL % (b'"', b'"', _ESCAPE, b'"', b'"'),
    _LITERAL % (b"'", b"'", _ESCAPE, b"'", b"'"),
    rb"[^ \t\r\n\v\f]",
)
_SPACE = rb"[ \t\r\n\v\f]*+"
_COMMENT = rb"(?://[^\\\n]*+(?![^\n])|/\*[^*]*+(?:\*(?![/\\])[^*]*+)*+\*/)"
_GAP = _SPACE + rb"(?:" + _COMMENT + _SPACE + rb")*+"
_TOKEN = re.compile(_GAP + rb"(?:" + rb"|".join(rb"(%b)" % group for group in _GROUPS) + rb"|\Z)")

_SPLICE = re.compile(rb"\\[ \t]*\r?\n")
_SPLICES = re.compile(rb"(?:\\[ \t]*\r?\n){0,64}")
_STAR_SLASH = re.compile(rb"\*(?:/|\\[ \t]*\r?\n(?:\\[ \t]*\r?\n){0,64}/)")
_COMMENT_TEXT = re.compile(rb"[^\\\n]*")
_WORDS = re.compile(_WORD + rb"*")
_NUMBER_PART = re.compile(rb"(?:[eEpP][+-]|'(?=[A-Za-z0-9_])|[A-Za-z0-9_.$\x80-\xff]){0,64}")
_RAW_OPEN = re.compile(rb'(?:u8|[uUL])?R"([^ ()\\\t\v\f\r\n"]{0,16})\(')
_QUOTE_OPEN = re.compile(rb"(?:u8|[uUL])?([\"'])")
_PLAIN = {
    b'"': re.compile(rb'(?:[^"\\\n]|\\[^\n \t\r\\]|\\\\(?![ \t\r\n])){0,256}'),
    b"'": re.compile(rb"(?:[^'\\\n]|\\[^\n \t\r\\]|\\\\(?![ \t\r\n])){0,256}"),
}
_HASH = re.compile(rb"\#\#?|%:(?:%:)?")
_INCLUDE_NAME = re.compile(rb"include_next|include|import")
_HEADER_NAME = re.compile(rb'<[^>\n]{0,4096}>|"[^"\n]{0,4096}"')


class Token(NamedTuple):
    """A token's kind and its physical byte range `[start, end)`."""

    kind: int
    start: int
    end: int


class Tokens(Sequence[Token]):
    """The tokens of one file, in order, held as arrays (nine bytes a token)."""

    __slots__ = ("ends", "hashes", "kinds", "starts")

    def __init__(self) -> None:
        self.kinds = array("B")
        self.starts = array("I")
        self.ends = array("I")
        self.hashes = array("I")
        """Indexes of the `#` tokens, where directives may begin."""

    def __len__(self) -> int:
        return len(self.kinds)

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> list[Token]: ...
    def __getitem__(self, index: int | slice) -> Token | list[Token]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self.kinds)))]
        return Token(self.kinds[index], self.starts[index], self.ends[index])

    def add(self, kind: int, start: int, end: int) -> None:
        """Append one token."""
        self.kinds.append(kind)
        self.starts.append(start)
        self.ends.append(end)


def lex(data: bytes) -> Tokens:
    """Split `data` into tokens; never fails, in time linear in the size."""
    tokens = Tokens()
    add_kind, add_start, add_end = tokens.kinds.append, tokens.starts.append, tokens.ends.append
    find_all = _TOKEN.finditer
    position = len(UTF8_BOM) if data.startswith(UTF8_BOM) else 0
    while position >= 0:
        restart = -1
        for match in find_all(data, position):
            kind = match.lastindex
            if kind is None:
                break
            start, end = match.span(kind)
            if kind == _SPECIAL:
                restart = _special(data, start, tokens)
                break
            add_kind(kind)
            add_start(start)
            add_end(end)
        position = restart
    return tokens


def splice_end(data: bytes, position: int) -> int:
    """The position after any line splices at `position`."""
    while (end := _match_end(_SPLICES, data, position)) > position:
        position = end
    return position


def line_gap_end(data: bytes, position: int) -> int:
    """The position after spaces, block comments and splices, within one logical line."""
    while position < len(data):
        byte = data[position]
        if byte in b" \t\r\v\f":
            position += 1
        elif (byte == 0x5C and (end := splice_end(data, position)) > position) or (
            byte == 0x2F and (end := _comment_end(data, position, line_comments=False)) > position
        ):
            position = end
        else:
            break
    return position


def _match_end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    match = pattern.match(data, position)
    return match.end() if match else position


def _special(data: bytes, start: int, tokens: Tokens) -> int:
    """Add what begins at `start`, a form the main expression leaves out; return its end."""
    byte = data[start]
    if byte in b"\\/":
        splice = byte == 0x5C
        end = splice_end(data, start) if splice else _comment_end(data, start, line_comments=True)
        if end > start:
            return end
    elif byte in b"#%":
        return _hash(data, start, tokens)
    elif raw := _RAW_OPEN.match(data, start):
        close = data.find(b")" + raw[1] + b'"', raw.end())
        end = len(data) if close < 0 else close + len(raw[1]) + 2
        tokens.add(RAW, start, end)
        return end
    elif quote := _QUOTE_OPEN.match(data, start):
        end = _literal_end(data, quote.end(), quote[1])
        tokens.add(STRING if quote[1] == b'"' else CHAR, start, end)
        return end
    elif byte in b".0123456789" and _NUMBER_PART.match(data, start):
        return _number(data, start, tokens)
    elif end := _name_end(data, start):
        return _name(data, start, end, tokens)
    tokens.add(PUNCT, start, start + 1)
    return start + 1


def _comment_end(data: bytes, start: int, *, line_comments: bool) -> int:
    """The end of the comment at `start`, or `start` where none begins."""
    second = splice_end(data, start + 1)
    opener = data[second : second + 1]
    if opener == b"*":
        close = _STAR_SLASH.search(data, second + 1)
        return close.end() if close else len(data)
    if opener != b"/" or not line_comments:
        return start
    position = second + 1
    while True:
        position = _match_end(_COMMENT_TEXT, data, position)
        if data[position : position + 1] != b"\\":
            return position
        position = max(splice_end(data, position), position + 1)


def _literal_end(data: bytes, position: int, quote: bytes) -> int:
    """The end of a literal whose text begins at `position`; open ones end with their line."""
    plain = _PLAIN[quote]
    while True:
        end = _match_end(plain, data, position)
        if end > position:
            position = end
            continue
        byte = data[position : position + 1]
        if byte == quote:
            return position + 1
        if byte != b"\\":
            return position
        spliced = splice_end(data, position)
        if spliced > position:
            position = spliced
            continue
        escaped = splice_end(data, position + 1)
        if escaped >= len(data) or data[escaped] == 0x0A:
            return escaped
        position = escaped + 1


def _number(data: bytes, start: int, tokens: Tokens) -> int:
    position = start
    while True:
        end = _match_end(_NUMBER_PART, data, position)
        if end == position:
            after = splice_end(data, position)
            if after == position or _match_end(_NUMBER_PART, data, after) == after:
                break
            end = after
        position = end
    tokens.add(NUMBER, start, position)
    return position


def _name_end(data: bytes, start: int) -> int:
    """The end of the identifier at `start`, splices included; 0 where none begins."""
    end = _match_end(_WORDS, data, start)
    if end == start:
        return 0
    while (after := splice_end(data, end)) > end:
        further = _match_end(_WORDS, data, after)
        if further == after:
            break
        end = further
    return end


def _name(data: bytes, start: int, end: int, tokens: Tokens) -> int:
    tokens.add(IDENT, start, end)
    if data.startswith(b"__has_include", start):
        paren = line_gap_end(data, end)
        header = line_gap_end(data, paren + 1)
        if data[paren : paren + 1] == b"(" and data[header : header + 1] == b"<":
            tokens.add(PUNCT, paren, paren + 1)
            return _header_name(data, header, tokens)
    return end


def _hash(data: bytes, start: int, tokens: Tokens) -> int:
    """Add `#`, `##` or `%`, and for an include the header's name too."""
    match = _HASH.match(data, start)
    if not match:
        tokens.add(PUNCT, start, start + 1)
        return start + 1
    end = match.end()
    if match[0] in (b"#", b"%:"):
        tokens.hashes.append(len(tokens))
    tokens.add(PUNCT, start, end)
    name = _INCLUDE_NAME.match(data, line_gap_end(data, end))
    if not name:
        return end
    tokens.add(IDENT, name.start(), _name_end(data, name.start()))
    if tokens.ends[-1] != name.end():
        return tokens.ends[-1]
    return _header_name(data, line_gap_end(data, name.end()), tokens)


def _header_name(data: bytes, position: int, tokens: Tokens) -> int:
    name = _HEADER_NAME.match(data, position)
    if not name:
        return position
    tokens.add(HEADER, position, name.end())
    return name.end()


def splices(data: bytes) -> list[bytes]:
    """The line splices in `data`, in order."""
    return _SPLICE.findall(data)
