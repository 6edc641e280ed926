"""The light preprocessor pass: directives, includes, macros and the branch each token is in."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from port.hipify import lexer
from port.hipify.lexer import HEADER, IDENT, STRING

if TYPE_CHECKING:
    from port.hipify.source import Source

_CONDITIONALS = (b"if", b"ifdef", b"ifndef")
_ARMS = (b"elif", b"elifdef", b"elifndef", b"else", b"endif")


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive: `name` (`include`, `define`, `if`, …), tokens `[first, last)` from the `#`."""

    name: bytes
    first: int
    last: int

    @property
    def body(self) -> range:
        """The tokens after the directive's name."""
        return range(min(self.first + 2, self.last), self.last)


@dataclass(frozen=True, slots=True)
class Include:
    """An include, or a `__has_include` test.

    `[start, end)` are the bytes of the header's name with its quotes or brackets. Where the
    directive names a macro instead, they are the value of the `#define` before it, or the macro's
    name when this file does not define it (`path` is empty then).
    """

    start: int
    end: int
    path: str
    angled: bool
    macro: str
    test: bool


@dataclass(frozen=True, slots=True)
class Macro:
    """A `#define`: tokens of its body; `parameters` is None for an object-like macro."""

    name: bytes
    token: int
    parameters: tuple[bytes, ...] | None
    body: range


@dataclass(slots=True, eq=False)
class Branch:
    """One arm of a conditional: tokens `[first, last)` from its own directive to the next one.

    `earlier` are the directives of the arms before it, which were false when this one is taken.
    """

    directive: Directive
    earlier: tuple[Directive, ...]
    parent: Branch | None
    first: int
    last: int


def directives(source: Source) -> tuple[Directive, ...]:
    """All directives of the file, in order."""
    tokens, data = source.tokens, source.data
    found = []
    done = 0
    for first in tokens.hashes:
        if first < done or not _begins_line(source, first):
            continue
        last = done = _line_end(data, tokens, first)
        has_name = last > first + 1 and tokens.kinds[first + 1] == IDENT
        found.append(Directive(source.text(first + 1) if has_name else b"", first, last))
    return tuple(found)


def _line_end(data: bytes, tokens: lexer.Tokens, first: int) -> int:
    """The index after the last token of the logical line in which token `first` is."""
    starts, ends = tokens.starts, tokens.ends
    last = first + 1
    while last < len(starts):
        newline = data.find(b"\n", ends[last - 1])
        if newline < 0:
            return len(starts)
        # All that ends before the next line end is of this line, and what it lies in as well.
        last = bisect_left(ends, newline + 1, last)
        if last == len(starts):
            break
        if starts[last] > newline and _breaks_line(data, ends[last - 1], starts[last]):
            break
        last += 1
    return last


def _begins_line(source: Source, index: int) -> bool:
    start = source.tokens.starts[index]
    return index == 0 or _breaks_line(source.data, source.tokens.ends[index - 1], start)


def _breaks_line(data: bytes, start: int, end: int) -> bool:
    """Whether the gap `[start, end)` between two tokens ends a logical line."""
    if data.find(b"\n", start, end) < 0:
        return False
    return lexer.line_gap_end(data, start) < end


def includes(source: Source, found: tuple[Directive, ...]) -> tuple[Include, ...]:
    """The includes of `found` and every `__has_include`, in order of position."""
    made = []
    definitions: dict[bytes, range] = {}
    for directive in found:
        if directive.name == b"define" and len(directive.body) > 1:
            definitions[source.text(directive.body[0])] = directive.body[1:]
        elif directive.name in (b"include", b"include_next", b"import") and directive.body:
            token = directive.body[0]
            if source.kind(token) == HEADER:
                made.append(_include(source, range(token, token + 1), test=False))
            elif source.kind(token) == IDENT:
                made.append(_macro_include(source, token, definitions))
    for name in (b"__has_include", b"__has_include_next"):
        made += [
            _include(source, range(opener + 1, opener + 2), test=True)
            for _, opener in source.calls(name)
            if source.kind(opener + 1) in (HEADER, STRING)
        ]
    # Cython: `cdef extern from "header.h":`
    made += [
        _include(source, range(index + 1, index + 2), test=False)
        for index in source.find(b"from")
        if source.text(index - 1) == b"extern" and source.kind(index + 1) == STRING
    ]
    return tuple(sorted(made, key=lambda include: include.start))


def _macro_include(source: Source, token: int, definitions: dict[bytes, range]) -> Include:
    macro = source.text(token)
    value = definitions.get(macro)
    text = source.slice(value[0], value[-1] + 1) if value else b""
    if value and text[:1] + text[-1:] in (b"<>", b'""'):
        return _include(source, value, macro=macro, test=False)
    start, end = source.tokens.starts[token], source.tokens.ends[token]
    return Include(start, end, "", angled=True, macro=_decode(macro), test=False)


def _include(source: Source, name: range, *, macro: bytes = b"", test: bool) -> Include:
    start, end = source.tokens.starts[name[0]], source.tokens.ends[name[-1]]
    text = source.data[start:end]
    return Include(start, end, _decode(text[1:-1]), text[:1] == b"<", _decode(macro), test)


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def macros(source: Source, found: tuple[Directive, ...]) -> tuple[Macro, ...]:
    """Every `#define` of the file, in order; a name may come up more than once."""
    made = []
    tokens = source.tokens
    for directive in found:
        if directive.name != b"define" or not directive.body:
            continue
        name = directive.body[0]
        first = name + 1
        parameters = None
        if (
            first < directive.last
            and source.text(first) == b"("
            and tokens.starts[first] == tokens.ends[name]
        ):
            closer = first + 1
            while closer < directive.last and source.text(closer) != b")":
                closer += 1
            parameters = tuple(
                text for i in range(first + 1, closer) if (text := source.text(i)) != b","
            )
            first = min(closer + 1, directive.last)
        made.append(Macro(source.text(name), name, parameters, range(first, directive.last)))
    return tuple(made)


def branches(source: Source, found: tuple[Directive, ...]) -> tuple[Branch, ...]:
    """The arms of all conditionals, in order of their first token."""
    made: list[Branch] = []
    stack: list[Branch] = []
    end = len(source.tokens)
    for directive in found:
        earlier: tuple[Directive, ...] = ()
        if directive.name in _ARMS and stack:
            arm = stack.pop()
            arm.last = directive.first
            if directive.name == b"endif":
                continue
            earlier = (*arm.earlier, arm.directive)
        elif directive.name not in _CONDITIONALS:
            continue
        parent = stack[-1] if stack else None
        stack.append(Branch(directive, earlier, parent, directive.first, end))
        made.append(stack[-1])
    return tuple(made)
