"""Names that the project declares itself, file by file and for the whole tree.

Only names that look like CUDA's are of interest. A member of a class or a function in a named
namespace that shares its name with one of CUDA's is the project's own and stays. At file scope a
name is renamed consistently, declaration and uses alike, so it needs no entry here, unless CUDA
has no such name: then it only must not be reported as unknown.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from port.hipify import vectors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Facts:
    """What one file declares. Names are as in the source."""

    owned: frozenset[tuple[bytes, bytes]] = frozenset()
    """(class or namespace, name) pairs."""
    declared: frozenset[bytes] = frozenset()
    """Names declared at any level: types, functions, variables, macros, enumerators."""
    defined: frozenset[bytes] = frozenset()
    """Those of `declared` that are more than a function's prototype."""
    imported: frozenset[tuple[bytes, bytes]] = frozenset()
    """(namespace, name) pairs of `using ::name` inside a namespace."""
    includes: tuple[tuple[str, bool], ...] = ()
    """(path, angled) of each include."""
    used: frozenset[bytes] = frozenset()
    """For a fragment, the names in it that look like CUDA's."""
    aliases: frozenset[tuple[bytes, bytes]] = frozenset()
    """(name, class or namespace that it leads to) pairs of aliases and base classes."""
    constants: frozenset[tuple[bytes, int]] = frozenset()
    """(name, value) of the integers that other files can use."""
    enumerations: frozenset[str] = frozenset()
    """CUDA's names of enumerations that it uses as types."""
    pastes: frozenset[tuple[bytes, ...]] = frozenset()
    """As `pasted.macros` gives them."""
    passed: frozenset[tuple[bytes, ...]] = frozenset()
    """As `pasted.arguments` gives them, for CUDA's functions and names of HIP's."""
    longer: frozenset[bytes] = frozenset()
    """Names that one of CUDA's functions, or a name of HIP's, is a part of."""


@dataclass(frozen=True, slots=True)
class Project:
    """The facts of all files of a tree together."""

    owned: frozenset[tuple[bytes, bytes]] = frozenset()
    declared: frozenset[bytes] = frozenset()
    defined: frozenset[bytes] = frozenset()
    imported: frozenset[tuple[bytes, bytes]] = frozenset()
    owned_names: frozenset[bytes] = frozenset()
    files: frozenset[str] = frozenset()
    """Every input's path, relative to the source folder."""
    tails: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Paths of `files` by file name."""
    constants: Mapping[bytes, int] = field(default_factory=dict)
    """Integers by name, where all files agree on the value."""
    vectors: frozenset[bytes] = frozenset()
    """Names that stand for one of CUDA's vector types."""
    included: frozenset[str] = frozenset()
    """What the files include, as they spell it."""

    def by_tail(self, path: str) -> str | None:
        """The first file of the tree whose path ends with the components of `path`."""
        path = posixpath.normpath(path)
        while path.startswith("../"):
            path = path[3:]
        for each in self.tails.get(posixpath.basename(path), ()):
            if each == path or each.endswith("/" + path):
                return each
        return None

    @classmethod
    def of(
        cls, facts: Iterable[Facts], files: Collection[str] = (), macros: Iterable[str] = ()
    ) -> Project:
        """Join the facts of all files; `macros` are the `-D` names."""
        owned: set[tuple[bytes, bytes]] = set()
        declared = {os.fsencode(name) for name in macros}
        defined = set(declared)
        imported: set[tuple[bytes, bytes]] = set()
        aliases: set[tuple[bytes, bytes]] = set()
        constants: dict[bytes, set[int]] = {}
        included: set[str] = set()
        for each in facts:
            included.update(path for path, _ in each.includes)
            owned |= each.owned
            aliases |= each.aliases
            declared |= each.declared
            defined |= each.defined
            imported |= each.imported
            for name, value in each.constants:
                constants.setdefault(name, set()).add(value)
        tails: dict[str, tuple[str, ...]] = {}
        for path in sorted(files):
            base = posixpath.basename(path)
            tails[base] = (*tails.get(base, ()), path)
        owned -= imported
        owned |= _reached(owned, aliases)
        return cls(
            frozenset(owned),
            frozenset(declared),
            frozenset(defined),
            frozenset(imported),
            frozenset(name for _, name in owned),
            frozenset(files),
            tails,
            {name: next(iter(values)) for name, values in constants.items() if len(values) == 1},
            vectors.named(aliases),
            frozenset(included),
        )


def _reached(
    owned: set[tuple[bytes, bytes]], aliases: set[tuple[bytes, bytes]]
) -> set[tuple[bytes, bytes]]:
    """What is owned by the names that lead to an owner, through any number of aliases."""
    names: dict[bytes, set[bytes]] = {}
    for owner, name in owned:
        names.setdefault(owner, set()).add(name)
    leading: dict[bytes, set[bytes]] = {}
    for alias, meant in aliases:
        leading.setdefault(meant, set()).add(alias)
    waiting = [owner for owner in names if owner in leading]
    while waiting:
        meant = waiting.pop()
        for alias in leading.get(meant, ()):
            held = names.setdefault(alias, set())
            if not names[meant] <= held:
                held |= names[meant]
                waiting.append(alias)
    return {(owner, name) for owner, held in names.items() for name in held}
