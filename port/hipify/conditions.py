"""Which arms of `#if` the converted build can compile, and from which HIP release on.

Only what is certain of every HIP build counts: the AMD platform's own macros, `-D`, and the release
(the chosen one or any later). An arm that no such build compiles is dead: what is left in it needs
no counterpart. An arm behind `HIP_VERSION >= …` may use what that release declares.
"""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING

from packaging.version import Version

from port.hipify import own_arms, tables
from port.hipify.constants import integer
from port.hipify.lexer import IDENT, NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from port.hipify.preprocess import Branch, Directive
    from port.hipify.unit import Unit

_UNDEFINED = frozenset({b"__HIP_PLATFORM_NVIDIA__", b"__HIP_PLATFORM_NVCC__"})
_KERNEL_FILE = frozenset({b"__HIPCC__", b"__HIP__"})
_BINARY = {
    b"||": 1, b"&&": 2, b"|": 3, b"^": 4, b"&": 5, b"==": 6, b"!=": 6, b"<": 7, b"<=": 7,
    b">": 7, b">=": 7, b"<<": 8, b">>": 8, b"+": 9, b"-": 9, b"*": 10, b"/": 10, b"%": 10,
}  # fmt: skip
_DEEPEST = 40


class Conditions:
    """The conditional arms of one file, seen from a build for `release` or later."""

    def __init__(self, unit: Unit, release: str, defines: Mapping[str, str]) -> None:
        self._unit = unit
        self._release = release
        self._defines = {os.fsencode(name): os.fsencode(defines[name]) for name in defines}
        self._floor = tables.version_number(release)
        self._possible: dict[Branch, frozenset[int]] = {}

    def release_at(self, index: int) -> str | None:
        """The oldest release whose build compiles token `index`; None where none does."""
        branch = self._unit.branch_at(index)
        if branch is None:
            return self._release
        versions = self._versions(branch)
        if not versions:
            return None
        oldest = min(versions)
        if oldest <= self._floor:
            return self._release
        known = [each for each in tables.RELEASES if tables.version_number(each) <= oldest]
        return max((self._release, known[-1]), key=Version) if known else self._release

    def _versions(self, branch: Branch) -> frozenset[int]:
        """The values of `HIP_VERSION` tried with which the build may compile `branch`."""
        chain: list[Branch] = []
        step: Branch | None = branch
        while step is not None and step not in self._possible:
            chain.append(step)
            step = step.parent
        for each in reversed(chain):
            around = self._possible[each.parent] if each.parent else self._points()
            self._possible[each] = frozenset(
                version for version in around if self._may_take(each, version)
            )
        return self._possible[branch]

    def _points(self) -> frozenset[int]:
        points = {tables.version_number(release) for release in tables.RELEASES} | {self._floor}
        for name in (b"HIP_VERSION", b"HIP_VERSION_MAJOR"):
            scale = 10_000_000 if name.endswith(b"MAJOR") else 1
            for index in self._unit.find(name):
                value = integer(self._unit.text(index + 2))
                if value is not None:
                    points.update((value * scale, (value + 1) * scale))
        return frozenset(point for point in points if point >= self._floor)

    def _may_take(self, branch: Branch, version: int) -> bool:
        if any(self._holds(directive, version) is True for directive in branch.earlier):
            return False
        return self._holds(branch.directive, version) is not False

    def _holds(self, directive: Directive, version: int) -> bool | None:
        body = directive.body
        if directive.name == b"else":
            return None
        if directive.name in (b"ifdef", b"ifndef", b"elifdef", b"elifndef"):
            defined = self.defined(body.start) if body else None
            return defined if defined is None else defined != directive.name.endswith(b"ndef")
        value = _Expression(self, body, version).value()
        return None if value is None else value != 0

    def defined(self, index: int) -> bool | None:
        """Whether the macro at token `index` is defined, None where that is not certain."""
        name = self._unit.text(index)
        if name in _UNDEFINED:
            return False
        if name in self._defines or name == b"__HIP_PLATFORM_AMD__":
            return True
        if self._unit.is_kernel_file and name in _KERNEL_FILE:
            return True
        if name in own_arms.UNDEFINED and index in self._unit.ahead_of_hip:
            return False
        return None

    def value_of(self, index: int, version: int) -> int | None:
        """What the macro at token `index` is in `#if`, None where that is not certain."""
        name = self._unit.text(index)
        if name == b"HIP_VERSION":
            return version
        if name == b"HIP_VERSION_MAJOR":
            return version // 10_000_000
        if name in self._defines:
            return integer(self._defines[name])
        defined = self.defined(index)
        return None if defined is None else int(defined)


class _Expression:
    """A `#if` expression with unknowns: the value is None where they decide it."""

    def __init__(self, conditions: Conditions, tokens: range, version: int) -> None:
        self._conditions = conditions
        self._unit = conditions._unit  # noqa: SLF001 - the two classes are one reader
        self._end = tokens.stop
        self._at = tokens.start
        self._version = version

    def value(self) -> int | None:
        value = self._binary(1, 0)
        return value if self._at >= self._end else None

    def _peek(self) -> bytes:
        return self._unit.text(self._at) if self._at < self._end else b""

    def _binary(self, lowest: int, depth: int) -> int | None:
        left = self._unary(depth)
        while (level := _BINARY.get(self._peek(), 0)) >= lowest:
            operation = self._peek()
            self._at += 1
            right = self._binary(level + 1, depth + 1)
            left = _combine(operation, left, right)
        return left

    def _unary(self, depth: int) -> int | None:
        word = self._peek()
        kind = self._unit.kind(self._at)
        self._at += 1
        if depth > _DEEPEST:
            self._at = self._end
            return None
        if word == b"!":
            value = self._unary(depth + 1)
            return None if value is None else int(not value)
        if word in (b"-", b"+"):
            value = self._unary(depth + 1)
            return value if value is None or word == b"+" else -value
        if word == b"(":
            value = self._binary(1, depth + 1)
            if self._peek() != b")":
                self._at = self._end + 1
                return None
            self._at += 1
            return value
        if word == b"defined":
            return self._defined()
        if kind == NUMBER:
            return integer(word)
        if kind == IDENT and self._peek() != b"(":
            return self._conditions.value_of(self._at - 1, self._version)
        if kind == IDENT and (close := self._unit.partner(self._at)) is not None:
            self._at = close + 1
        return None

    def _defined(self) -> int | None:
        in_brackets = self._peek() == b"("
        self._at += in_brackets
        defined = self._conditions.defined(self._at) if self._peek() else None
        self._at += 1 + in_brackets
        return None if defined is None else int(defined)


def _combine(operation: bytes, left: int | None, right: int | None) -> int | None:
    if operation in (b"&&", b"||"):
        deciding = operation == b"||"
        if deciding in (_truth(left), _truth(right)):
            return int(deciding)
        return None if left is None or right is None else int(not deciding)
    compute = _OPERATIONS.get(operation)
    if left is None or right is None or compute is None:
        return None
    return int(compute(left, right))


def _truth(value: int | None) -> bool | None:
    return None if value is None else value != 0


_OPERATIONS: dict[bytes, Callable[[int, int], int]] = {
    b"==": operator.eq,
    b"!=": operator.ne,
    b"<": operator.lt,
    b"<=": operator.le,
    b">": operator.gt,
    b">=": operator.ge,
    b"+": operator.add,
    b"-": operator.sub,
    b"*": operator.mul,
}
