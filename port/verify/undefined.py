"""Undefined symbols that nothing a file needs has, in the target or on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from port.errors import PortError
from port.verify.child import shared_reader
from port.verify.words import matches

if TYPE_CHECKING:
    from port.verify.case import Case
    from port.verify.facts import Elf

# What every process of an interpreter has loaded, whether a file names it or not.
_PROCESS = ("libc.so.6", "libm.so.6")
_PYTHON = ("Py*", "_Py*")
_FOLDERS = ("/lib/{m}", "/usr/lib/{m}", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
_TRIPLES = {"EM_X86_64": "x86_64-linux-gnu", "EM_AARCH64": "aarch64-linux-gnu"}


def missing(case: Case) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """By file: symbols that no library at hand has, and the libraries that are not at hand."""
    host = _Host()
    found = {name: _missing(case, name, elf, host) for name, elf in case.natives.items()}
    return {name: (frozenset(a), frozenset(b)) for name, (a, b) in found.items() if a}


def _missing(case: Case, name: str, elf: Elf, host: _Host) -> tuple[set[str], set[str]]:
    """Symbols that no library at hand has, and the libraries that are not at hand."""
    allowed = (*_PYTHON, *case.policy.undefined_allowed)
    missing = {
        u.name
        for u in elf.undefined
        if not u.weak and u.file is None and not matches(u.name, allowed)
    }
    if not missing:
        return set(), set()
    roots = [r for r in case.natives if name in case.closure(r)[0]]
    inside: set[str] = set()
    outside = set(_PROCESS)
    for root in roots:
        held, other = case.closure(root)
        inside |= held
        outside |= other
    for file in inside:
        missing -= case.natives[file].exported.keys()
    absent: set[str] = set()
    for library in sorted(outside):
        if not missing:
            break
        exported = host.exports(library, elf)
        if exported is None:
            absent.add(library)
        else:
            missing -= exported
    return missing, absent


class _Host:
    """Exports of libraries on this machine, read when first asked for."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], frozenset[str] | None] = {}

    def exports(self, library: str, asker: Elf) -> frozenset[str] | None:
        """What the machine's copy of a library exports, None where it has none."""
        key = library, asker.machine
        if key not in self._known:
            self._known[key] = self._read(library, asker)
        return self._known[key]

    def _read(self, library: str, asker: Elf) -> frozenset[str] | None:
        if "/" in library:
            return None
        for folder in _FOLDERS:
            path = f"{folder.format(m=_TRIPLES.get(asker.machine, ''))}/{library}"
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                with shared_reader() as reader:
                    found = reader.read(descriptor, path)
            except PortError:
                continue
            finally:
                os.close(descriptor)
            if found.machine == asker.machine and found.bits == asker.bits:
                return frozenset(found.exported)
        return None
