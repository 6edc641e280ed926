"""One source file: its bytes, tokens, brackets and positions."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from port.hipify import lexer, python_lexer
from port.hipify.lexer import IDENT, PUNCT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SPLICE = re.compile(rb"\\[ \t]*\r?\n")
_OPENERS = b"([{"
_CLOSER_OF = {0x28: 0x29, 0x5B: 0x5D, 0x7B: 0x7D}
_NOTHING: Sequence[int] = array("I")


class Position(NamedTuple):
    """A place in a file: 1-based line and 1-based column in bytes."""

    line: int
    column: int


class Source:
    """The bytes of one file and views on them, each computed once when first asked for."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        """Relative to the source folder, with `/`; undecodable bytes are surrogate escapes."""
        self.data = data

    @cached_property
    def tokens(self) -> lexer.Tokens:
        """All tokens but comments and white space."""
        if self.path.endswith(python_lexer.SUFFIXES):
            return python_lexer.lex(self.data)
        return lexer.lex(self.data)

    def forget(self) -> None:
        """Drop most of what was computed and can be again: a tree has many files."""
        for name in self.__dict__.keys() - {"path", "data", "tokens", "names"}:
            del self.__dict__[name]

    def close(self) -> None:
        """Drop everything: what was computed refers to this object, and would wait for a collector.

        Tokens take several times the room of the text.
        """
        self.__dict__.clear()

    def text(self, index: int) -> bytes:
        """The spelling of token `index` with line splices taken out; empty past either end."""
        tokens = self.tokens
        if index < 0:
            return b""
        try:
            text = self.data[tokens.starts[index] : tokens.ends[index]]
        except IndexError:
            return b""
        return (
            _SPLICE.sub(b"", text) if b"\n" in text and tokens.kinds[index] != lexer.RAW else text
        )

    def kind(self, index: int) -> int:
        """The kind of token `index`; 0 past either end."""
        return self.tokens.kinds[index] if 0 <= index < len(self.tokens.kinds) else 0

    def slice(self, first: int, last: int) -> bytes:
        """The bytes from the start of token `first` to the end of token `last - 1`, as they are."""
        if first >= last:
            return b""
        return self.data[self.tokens.starts[first] : self.tokens.ends[last - 1]]

    @cached_property
    def names(self) -> Mapping[bytes, Sequence[int]]:
        """Token indexes of each identifier, in order."""
        # Most names are there once: a tuple takes half of an array's room.
        found: dict[bytes, tuple[int] | array[int]] = {}
        tokens, data = self.tokens, self.data
        starts, ends = tokens.starts, tokens.ends
        for index, kind in enumerate(tokens.kinds):
            if kind == IDENT:
                text = data[starts[index] : ends[index]]
                if b"\n" in text:
                    text = _SPLICE.sub(b"", text)
                places = found.get(text)
                if places is None:
                    found[text] = (index,)
                elif isinstance(places, tuple):
                    found[text] = array("I", (*places, index))
                else:
                    places.append(index)
        return found

    def find(self, name: bytes) -> Sequence[int]:
        """Token indexes of identifier `name`."""
        return self.names.get(name, _NOTHING)

    @cached_property
    def _lines(self) -> array[int]:
        return array("I", (0, *(match.end() for match in re.finditer(rb"\n", self.data))))

    def position(self, offset: int) -> Position:
        """The line and column of a byte offset."""
        line = bisect_right(self._lines, offset)
        return Position(line, offset - self._lines[line - 1] + 1)

    def line_start(self, line: int) -> int:
        """The offset of 1-based `line`."""
        return self._lines[line - 1]

    @property
    def line_count(self) -> int:
        """Physical lines, the piece after the last line end included."""
        return len(self._lines)

    @cached_property
    def _partners(self) -> array[int]:
        """By token, one more than the index of the matching bracket; 0 for what matches nothing."""
        tokens, data = self.tokens, self.data
        starts, ends = tokens.starts, tokens.ends
        partners = array("I", bytes(4 * len(tokens)))
        open_ones: list[tuple[int, int]] = []
        for index, kind in enumerate(tokens.kinds):
            if kind != PUNCT or ends[index] - starts[index] != 1:
                continue
            byte = data[starts[index]]
            if byte in _OPENERS:
                open_ones.append((index, _CLOSER_OF[byte]))
            elif byte in b")]}":
                if byte == 0x7D:
                    # A brace outranks what is left open inside it: `#if` arms often leave that.
                    while open_ones and open_ones[-1][1] != byte:
                        open_ones.pop()
                if open_ones and open_ones[-1][1] == byte:
                    opener = open_ones.pop()[0]
                    partners[opener] = index + 1
                    partners[index] = opener + 1
        return partners

    def partner(self, index: int) -> int | None:
        """The index of the bracket that matches bracket token `index`, if there is one."""
        found = self._partners[index] if 0 <= index < len(self.tokens) else 0
        return found - 1 if found else None

    def calls(self, name: bytes) -> Iterator[tuple[int, int]]:
        """`(name index, opening bracket index)` where `name` is followed by `(`."""
        for index in self.find(name):
            if self.text(index + 1) == b"(":
                yield index, index + 1
