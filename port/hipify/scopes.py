"""Which namespace, class or function each token lies in, read from the braces."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from port.hipify.lexer import IDENT, STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from port.hipify.preprocess import Directive
    from port.hipify.source import Source

_BRACES = re.compile(rb"[{};]")
_CLASS_KEYS = frozenset({b"class", b"struct", b"union"})
_TYPE_OF = frozenset({b"decltype", b"typeof", b"__typeof__", b"__typeof"})
_TAIL_WORDS = frozenset(
    {b"const", b"noexcept", b"override", b"final", b"volatile", b"try", b"&", b"&&"}
)


class Scope(NamedTuple):
    """`kind` is file, namespace, class, enum, function or block.

    `name`: of a namespace (its last component) or class, empty where it has none. `owner`: the
    class or namespace named before a function's own name (`Table` in `void Table::use() {`).
    """

    kind: str
    name: bytes = b""
    owner: bytes = b""
    parent: Scope | None = None

    @property
    def in_function(self) -> bool:
        """Whether this is the inside of a function's body."""
        return self.kind in ("function", "block")

    def owners(self) -> tuple[bytes, ...]:
        """The classes and named namespaces around, innermost first; at most of 64 levels."""
        found = []
        scope: Scope | None = self
        for _ in range(64):
            if scope is None:
                break
            if scope.kind in ("class", "namespace") and scope.name:
                found.append(scope.name)
            elif scope.owner:
                found.append(scope.owner)
            scope = scope.parent
        return tuple(found)


class Scopes:
    """The scopes of one file. Unbalanced braces of `#if` arms count once, by the last arm."""

    def __init__(self, source: Source, directives: tuple[Directive, ...]) -> None:
        self._source = source
        self._starts = [0]
        self._scopes = [Scope("file")]
        self._walk(directives)

    def at(self, index: int) -> Scope:
        """The innermost scope that token `index` lies in."""
        return self._scopes[bisect_right(self._starts, index) - 1]

    def _walk(self, directives: tuple[Directive, ...]) -> None:
        marks = self._source.marks
        stack = [self._scopes[0]]
        saved: list[list[Scope]] = []
        head = 0
        begin = 0
        for directive in (*directives, None):
            end = directive.first if directive else len(marks)
            for match in _BRACES.finditer(marks, begin, end):
                index = match.start()
                byte = marks[index]
                if byte == 0x7B:
                    stack.append(self._open(head, index, stack[-1]))
                    self._enter(self._scope_start(head, index, stack[-1]), stack[-1])
                    head = index + 1
                elif byte == 0x7D:
                    if len(stack) > 1:
                        stack.pop()
                    self._enter(index + 1, stack[-1])
                    head = index + 1
                else:
                    head = index + 1
            if directive is None:
                break
            begin = directive.last
            if head == directive.first:
                head = begin
            if directive.name in (b"if", b"ifdef", b"ifndef"):
                saved.append(list(stack))
            elif directive.name in (b"else", b"elif", b"elifdef", b"elifndef") and saved:
                stack = list(saved[-1])
                self._enter(begin, stack[-1])
                head = begin
            elif directive.name == b"endif" and saved:
                saved.pop()

    def _enter(self, start: int, scope: Scope) -> None:
        while self._starts[-1] > start:
            self._starts.pop()
            self._scopes.pop()
        if self._starts[-1] == start:
            self._scopes[-1] = scope
        else:
            self._starts.append(start)
            self._scopes.append(scope)

    def _scope_start(self, head: int, brace: int, scope: Scope) -> int:
        if scope.kind != "function":
            return brace + 1
        place = self._source.marks.find(b"(", head, brace)
        return (brace if place < 0 else place) + 1

    def _open(self, head: int, brace: int, parent: Scope) -> Scope:
        """The scope that the `{` at `brace` opens; the tokens from `head` lead up to it."""
        source = self._source
        # A head of a thousand tokens is data, not a declaration.
        head = max(head, brace - 1000)
        words = source.texts[head:brace]
        if b"namespace" in words[:3]:
            name = words[-1] if words[-1] != b"namespace" else b""
            return Scope("namespace", name, parent=parent)
        if words[:1] == [b"extern"] and source.kind(brace - 1) == STRING:
            return parent
        if b"enum" in words and b"(" not in words:
            return Scope("enum", _enum_name(words), parent=parent)
        class_name = self._class_name(head, words)
        if class_name is not None:
            return Scope("class", class_name, parent=parent)
        if parent.in_function or not _has_parameters(words):
            return Scope("block", parent=parent)
        return Scope("function", owner=_owner(words), parent=parent)

    def _class_name(self, head: int, words: Sequence[bytes]) -> bytes | None:
        """The name of the class whose head this is, empty for one without; None if it is none."""
        if _CLASS_KEYS.isdisjoint(words):
            return None
        place = next(i for i, word in enumerate(words) if word in _CLASS_KEYS)
        if place >= 0 and words[:1] == [b"template"]:
            close = _skip(words, 1)
            place = next((i for i in range(close, len(words)) if words[i] in _CLASS_KEYS), -1)
        if place < 0:
            return None
        name = b""
        index = place + 1
        while index < len(words):
            word = words[index]
            if word == b":":
                return name
            if word in (b"(", b"[", b"<"):
                index = _skip(words, index)
                if index == len(words) and word == b"(":
                    return None
                continue
            if self._source.kind(head + index) == IDENT:
                if word in _TAIL_WORDS and words[index - 1] == b")":
                    return None
                name = name if word == b"final" else word
            elif word not in (b"::", b"]", b">"):
                return None
            index += 1
        return name


def _skip(words: Sequence[bytes], opener: int) -> int:
    """The index after the bracket group at `opener`."""
    depth = 0
    for index in range(opener, len(words)):
        word = words[index]
        depth += (word in (b"(", b"[", b"<")) - (word in (b")", b"]", b">")) - 2 * (word == b">>")
        if depth <= 0:
            return index + 1
    return len(words)


def _has_parameters(words: Sequence[bytes]) -> bool:
    """Whether the head is a function's: a bracket group, no type's, with no `=` outside of it."""
    depth = 0
    found = False
    before = b""
    for word in words:
        if depth == 0 and word == b"=":
            return False
        found = found or (depth == 0 and word == b"(" and before not in _TYPE_OF)
        depth += (word == b"(") - (word == b")")
        before = word
    return found


def _enum_name(words: Sequence[bytes]) -> bytes:
    place = words.index(b"enum") + 1
    while place < len(words) and words[place] in _CLASS_KEYS:
        place += 1
    scoped = words[place - 1] in _CLASS_KEYS
    return words[place] if scoped and place < len(words) else b""


def _owner(words: Sequence[bytes]) -> bytes:
    """The class or namespace before a function's name: `Table` of `Table<T>::~Table(`."""
    place = words.index(b"(") - 2
    if place > 0 and words[place] == b"~":
        place -= 1
    if place < 1 or words[place] != b"::":
        return b""
    place -= 1
    depth = 0
    while place > 0 and (words[place] == b">" or depth):
        depth += (words[place] == b">") - (words[place] == b"<")
        place -= 1
    return words[place]
