"""Counting CUDA names in code, apart from the converter's own lexer: a second opinion.

Comments, strings and character literals are blanked first, so that what is counted is what a
compiler would see.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

_NOT_CODE = re.compile(
    rb'(?P<raw>(?:u8|[uUL])?R"(?P<fence>[^ ()\\\s"]{0,16})\(.*?\)(?P=fence)")'
    rb"|//(?:[^\\\n]|\\\r?\n|\\)*|/\*.*?(?:\*/|\Z)"
    rb'|"(?:[^"\\\n]|\\\r?\n|\\.)*"?'
    rb"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)*'?",
    re.DOTALL,
)
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include.*$", re.MULTILINE)
_LINE = re.compile(rb"[ \t]*#[ \t]*line[ \t]+(\d+)")
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_NOT_NEWLINE = re.compile(rb"[^\n]")


def code_only(data: bytes) -> bytes:
    """`data` with comments, literals and include lines blanked; line numbers stay."""
    blanked = _INCLUDE.sub(b"", data)
    return _NOT_CODE.sub(lambda match: _NOT_NEWLINE.sub(b" ", match.group()), blanked)


def cuda_names(data: bytes, declared: AbstractSet[str]) -> Iterator[tuple[int, str]]:
    """`(line, name)` of each identifier in code that is in `declared`; lines start at 1."""
    line = 1
    last = 0
    code = code_only(data)
    for match in _NAME.finditer(code):
        name = match.group().decode("ascii")
        if name in declared:
            line += code.count(b"\n", last, match.start())
            last = match.start()
            yield line, name


def source_lines(data: bytes) -> list[int]:
    """The source line of each line of a converted file, as its `#line` directives give them."""
    lines = []
    number = 0
    for text in data.split(b"\n"):
        number += 1
        lines.append(number)
        directive = _LINE.match(text)
        if directive:
            number = int(directive[1]) - 1
    return lines
