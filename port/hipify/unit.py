"""One file under conversion: what rules look at."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from port.hipify import own_arms, preprocess
from port.hipify.findings import Finding, Severity
from port.hipify.rewrite import Edit
from port.hipify.scopes import Scopes
from port.hipify.source import Source

if TYPE_CHECKING:
    from port.hipify.preprocess import Branch, Directive, Include, Macro

_BREAKS = re.compile(rb"[;{}(]")

KERNEL_SUFFIXES = (
    *(".cu", ".cuh", ".cu.in", ".cuh.in"),
    *(".cu.h", ".cu.cc", ".cu.cpp", ".cu.cxx"),  # builds that go by one suffix
)
"""What nvcc compiles, or includes, as CUDA."""

FRAGMENT_SUFFIXES = (".inc", ".def", ".inl", ".ipp", ".tpp", ".tcc", ".txx", ".icc", ".impl")
"""Files that are included in the middle of others, where no include of theirs may be put."""


class Unit(Source):
    """A source file with its preprocessor pass and scopes, each computed when first asked for."""

    @property
    def is_kernel_file(self) -> bool:
        """Whether nvcc compiles or includes this file as CUDA (`KERNEL_SUFFIXES`)."""
        return self.path.endswith(KERNEL_SUFFIXES)

    @cached_property
    def directives(self) -> tuple[Directive, ...]:
        """All preprocessor directives, in order."""
        return preprocess.directives(self)

    @cached_property
    def includes(self) -> tuple[Include, ...]:
        """All includes and `__has_include` tests, in order."""
        return preprocess.includes(self, self.directives)

    @cached_property
    def macros(self) -> tuple[Macro, ...]:
        """All `#define`s, in order."""
        return preprocess.macros(self, self.directives)

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """The arms of all conditionals, in order of their first token."""
        return preprocess.branches(self, self.directives)

    @cached_property
    def ahead_of_hip(self) -> frozenset[int]:
        """Names that conditions ask for, ahead of an arm that the project has for HIP itself."""
        return own_arms.find(self)

    @cached_property
    def scopes(self) -> Scopes:
        """Namespaces, classes and functions by token."""
        return Scopes(self, self.directives)

    @cached_property
    def _directive_starts(self) -> list[int]:
        return [directive.first for directive in self.directives]

    @cached_property
    def _branch_starts(self) -> list[int]:
        return [branch.first for branch in self.branches]

    @cached_property
    def _breaks(self) -> list[int]:
        return [match.start() for match in _BREAKS.finditer(self.marks)]

    def statement_start(self, index: int) -> int:
        """The first token after the last `;`, `{`, `}` or `(` before token `index`."""
        slot = bisect_right(self._breaks, index - 1) - 1
        return self._breaks[slot] + 1 if slot >= 0 else 0

    def directive_at(self, index: int) -> Directive | None:
        """The directive that token `index` is part of."""
        slot = bisect_right(self._directive_starts, index) - 1
        if slot >= 0 and index < self.directives[slot].last:
            return self.directives[slot]
        return None

    def branch_at(self, index: int) -> Branch | None:
        """The innermost conditional arm that token `index` lies in."""
        slot = bisect_right(self._branch_starts, index) - 1
        branch = self.branches[slot] if slot >= 0 else None
        while branch is not None and index >= branch.last:
            branch = branch.parent
        return branch

    def edit(self, first: int, last: int, text: bytes, *, compat: tuple[str, ...] = ()) -> Edit:
        """An edit that replaces tokens `[first, last)`."""
        return Edit(self.tokens.starts[first], self.tokens.ends[last - 1], text, compat)

    def finding(
        self,
        rule: str,
        severity: Severity,
        token: int,
        message: str,
        remedy: str,
        *,
        name: str | None = None,
    ) -> Finding:
        """A finding at token `token`, named for its text unless `name` is given."""
        if name is None:
            name = self.text(token).decode("utf-8", "replace")
        offset = self.tokens.starts[token]
        return self.finding_at(rule, severity, offset, name, message, remedy)

    def finding_at(
        self, rule: str, severity: Severity, offset: int, name: str, message: str, remedy: str
    ) -> Finding:
        """A finding at a byte offset."""
        line, column = self.position(offset)
        return Finding(self.path, line, column, rule, severity, name, message, remedy)
