"""One source file: its bytes, tokens, brackets and positions."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, overload

from port.hipify import lexer, python_lexer
from port.hipify.lexer import IDENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SPLICE = re.compile(rb"\\[ \t]*\r?\n")
_MARKS = {bytes([byte]): byte for byte in b"()[]{};,"}
_BRACKETS = re.compile(rb"[()\[\]{}]")
_CLOSER_OF = {0x28: 0x29, 0x5B: 0x5D, 0x7B: 0x7D}
_BRACE = 0x7D
_LARGE = 200_000  # tokens
_NOTHING: Sequence[int] = array("I")


class Position(NamedTuple):
    """A place in a file: 1-based line and 1-based column in bytes."""

    line: int
    column: int


class _Texts(Sequence[bytes]):
    """Texts made when asked for: kept, they take ten times the room of a large file."""

    __slots__ = ("_data", "_tokens")

    def __init__(self, data: bytes, tokens: lexer.Tokens) -> None:
        self._data = data
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        tokens = self._tokens
        text = self._data[tokens.starts[index] : tokens.ends[index]]
        if b"\n" in text and tokens.kinds[index] != lexer.RAW:
            return _SPLICE.sub(b"", text)
        return text


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

    @cached_property
    def texts(self) -> Sequence[bytes]:
        """The spelling of each token, with line splices taken out of all but raw strings."""
        data, tokens = self.data, self.tokens
        if len(tokens) > _LARGE:
            return _Texts(data, tokens)
        starts, ends = tokens.starts, tokens.ends
        found = [data[start:end] for start, end in zip(starts, ends, strict=True)]
        for splice in _SPLICE.finditer(data):
            index = bisect_right(starts, splice.start()) - 1
            inside = index >= 0 and splice.start() < ends[index]
            if inside and tokens.kinds[index] != lexer.RAW:
                found[index] = _SPLICE.sub(b"", found[index])
        return found

    @cached_property
    def marks(self) -> bytes:
        """A byte a token: that of a bracket, semicolon or comma, 0 for all others."""
        mark = _MARKS.get
        return bytes(mark(text, 0) for text in self.texts)

    def text(self, index: int) -> bytes:
        """The spelling of token `index` with line splices taken out; empty past either end."""
        if index < 0:
            return b""
        try:
            return self.texts[index]
        except IndexError:
            return b""

    def kind(self, index: int) -> int:
        """The kind of token `index`; 0 past either end."""
        if index < 0:
            return 0
        try:
            return self.tokens.kinds[index]
        except IndexError:
            return 0

    def slice(self, first: int, last: int) -> bytes:
        """The bytes from the start of token `first` to the end of token `last - 1`, as they are."""
        if first >= last:
            return b""
        return self.data[self.tokens.starts[first] : self.tokens.ends[last - 1]]

    @cached_property
    def names(self) -> Mapping[bytes, Sequence[int]]:
        """Token indexes of each identifier, in order."""
        found: defaultdict[bytes, array[int]] = defaultdict(lambda: array("I"))
        texts = self.texts
        for index, kind in enumerate(self.tokens.kinds):
            if kind == IDENT:
                found[texts[index]].append(index)
        # Most names are there once: a tuple takes half of an array's room.
        return {name: places if len(places) > 1 else (places[0],) for name, places in found.items()}

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

    @cached_property
    def brackets(self) -> array[int]:
        """Indexes of all brackets, in order."""
        return array("I", map(re.Match.start, _BRACKETS.finditer(self.marks)))

    @cached_property
    def _partners(self) -> array[int]:
        """By token, one more than the index of the matching bracket; 0 for what matches nothing."""
        marks = self.marks
        partners = array("I", bytes(4 * len(marks)))
        open_ones: list[tuple[int, int]] = []
        for index in self.brackets:
            byte = marks[index]
            if byte in _CLOSER_OF:
                open_ones.append((index, _CLOSER_OF[byte]))
                continue
            if byte == _BRACE:
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
        if index < 0:
            return None
        try:
            found = self._partners[index]
        except IndexError:
            return None
        return found - 1 if found else None

    def calls(self, name: bytes) -> Iterator[tuple[int, int]]:
        """`(name index, opening bracket index)` where `name` is followed by `(`."""
        for index in self.find(name):
            if self.text(index + 1) == b"(":
                yield index, index + 1
