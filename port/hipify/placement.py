"""Where a header that the converted file needs is included, if possible without moving a line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify import lexer
from port.hipify.rewrite import Edit

if TYPE_CHECKING:
    from port.hipify.preprocess import Directive
    from port.hipify.unit import Unit

_INCLUDES = (b"include", b"include_next", b"import")
_PIECE = re.compile(
    rb"//[^\\\n]*(?:\\(?:[ \t]*\r?\n)?[^\\\n]*){0,200}|/\*[\s\S]*?(?:\*/|\Z)|\\[ \t]*\r?\n|[\s\S]"
)
_BLANK = re.compile(rb"[ \t]*(?=\r?\n)")


def after_include(unit: Unit, offset: int, header: str) -> tuple[Edit, int]:
    """An edit that includes `header` near the include at `offset`, and the lines it adds.

    The header then stands in the same arm of a conditional. A blank line that follows the include,
    or the includes after it, takes it up; else it gets a line of its own before the include, with a
    `#line` that keeps the numbers.
    """
    found = unit.directives
    starts = unit.tokens.starts
    place = max(i for i, each in enumerate(found) if starts[each.first] <= offset)
    first = found[place]
    while True:
        blank, _ = _free_places(
            unit.data, unit.tokens.ends[found[place].last - 1], _next(unit, found[place])
        )
        if blank is not None:
            return Edit(blank, blank, _directive(header)), 0
        following = place + 1
        if (
            following == len(found)
            or found[following].name not in _INCLUDES
            or found[following].first != found[place].last
        ):
            break
        place = following
    line = unit.position(starts[first.first]).line
    return _own_line(unit, unit.line_start(line), line, header)


def ahead_of_code(unit: Unit, header: str) -> tuple[Edit, int]:
    """An edit that includes `header` ahead of all code, and the lines it adds.

    A blank line or the beginning of a comment takes it up where the file has one there.
    """
    start = len(lexer.UTF8_BOM) if unit.data.startswith(lexer.UTF8_BOM) else 0
    blank, comment = _free_places(unit.data, start, _preamble_end(unit))
    if blank is not None:
        return Edit(blank, blank, _directive(header)), 0
    if comment is not None:
        return Edit(comment, comment, _directive(header) + b" "), 0
    return on_top(unit, header)


def on_top(unit: Unit, header: str) -> tuple[Edit, int]:
    """An edit that includes `header` in a first line of its own, and the lines it adds."""
    start = len(lexer.UTF8_BOM) if unit.data.startswith(lexer.UTF8_BOM) else 0
    return _own_line(unit, start, 1, header)


def _directive(header: str) -> bytes:
    return b"#include " + header.encode("utf-8", "surrogateescape")


def _own_line(unit: Unit, start: int, line: int, header: str) -> tuple[Edit, int]:
    end = b"\r\n" if b"\r\n" in unit.data else b"\n"
    text = _directive(header) + end + b"#line %d" % line + end
    return Edit(start, start, text), 2


def _next(unit: Unit, directive: Directive) -> int:
    """The offset of the first token after `directive`."""
    tokens = unit.tokens
    return tokens.starts[directive.last] if directive.last < len(tokens) else len(unit.data)


def _preamble_end(unit: Unit) -> int:
    """The offset of the first token that a header has to come before."""
    index = 0
    found = unit.directives
    for place, directive in enumerate(found):
        if directive.first != index:
            break
        words = [unit.text(i) for i in range(directive.first + 1, directive.last)]
        if words != [b"pragma", b"once"] and not _is_guard(unit, found, place):
            break
        index = directive.last
    return unit.tokens.starts[index] if index < len(unit.tokens) else len(unit.data)


def _is_guard(unit: Unit, found: tuple[Directive, ...], place: int) -> bool:
    """Whether a directive is part of an include guard: `#ifndef NAME`, then `#define NAME`."""
    if found[place].name == b"define":
        place -= 1
    if place < 0 or place + 1 == len(found):
        return False
    test, definition = found[place], found[place + 1]
    names = [[unit.text(i) for i in each.body] for each in (test, definition)]
    return (
        (test.name, definition.name) == (b"ifndef", b"define")
        and len(names[0]) == 1
        and names[0] == names[1]
        and definition.first == test.last
    )


def _free_places(data: bytes, position: int, end: int) -> tuple[int | None, int | None]:
    """The last blank line and the first comment that begins a line, between two offsets."""
    blank = comment = None
    at_line_start = position == 0 or data[:position] == lexer.UTF8_BOM
    while position < end:
        match = _PIECE.match(data, position)
        if match is None:
            break
        piece = match[0]
        if at_line_start:
            if _BLANK.match(data, position, end):
                blank = position
            elif piece.startswith((b"//", b"/*")) and comment is None:
                comment = position
        at_line_start = piece == b"\n"
        position = match.end()
    return blank, comment
