"""One target under one policy: what each check sees, and the platform it is judged for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from port.policy import PLATFORMS
from port.verify import undefined
from port.verify.words import family, labels, library_base, platform_in_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from port.policy import Policy
    from port.verify.contents import Contents
    from port.verify.facts import Elf
    from port.verify.report import Severity

_CUDA_CALL = re.compile(r"(__)?cuda[A-Z]\w*")
_HIP_CALL = re.compile(r"(__)?hip[A-Z]\w*")


@dataclass(frozen=True)
class Case:
    """`strict` says that the policy was given or is the target's own: then all of it is demanded.

    `platform` is None where a target mixes platforms; `how` says what decided. `before` is the
    wheel as it was ahead of repair.
    """

    contents: Contents
    platform: str | None
    how: str
    policy: Policy
    strict: bool
    asked: bool
    architectures: tuple[str, ...] = ()
    before: Contents | None = None

    @cached_property
    def natives(self) -> Mapping[str, Elf]:
        """ELF files for the host, by name."""
        return self.contents.natives

    @property
    def severity(self) -> Severity:
        """How bad it is that GPU code is absent: an error where somebody said that it has to be
        there, by asking for the platform or by a policy, not where a name alone suggests it.
        """
        return "error" if self.strict or self.asked else "warning"

    @cached_property
    def missing(self) -> Mapping[str, tuple[frozenset[str], frozenset[str]]]:
        """By file: undefined symbols that no library at hand has, and those not at hand."""
        return undefined.missing(self)

    @cached_property
    def _by_library(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for name, elf in self.natives.items():
            found.setdefault(name.rpartition("/")[2], name)
            if elf.soname:
                found.setdefault(elf.soname, name)
        return found

    @cached_property
    def _closures(self) -> dict[str, tuple[set[str], set[str]]]:
        return {}

    def bundled(self, library: str) -> str | None:
        """The file of the target that a NEEDED name means, by file name or soname."""
        return self._by_library.get(library)

    def closure(self, name: str) -> tuple[set[str], set[str]]:
        """Files of the target that `name` loads, itself included, and libraries from elsewhere."""
        if name not in self._closures:
            self._closures[name] = self._follow(name)
        return self._closures[name]

    def _follow(self, name: str) -> tuple[set[str], set[str]]:
        inside, outside = {name}, set[str]()
        waiting = [name]
        while waiting:
            for library in self.natives[waiting.pop()].needed:
                file = self.bundled(library)
                if file is None:
                    outside.add(library)
                elif file not in inside:
                    inside.add(file)
                    waiting.append(file)
        return inside, outside


def calls(elf: Elf, platform: str) -> list[str]:
    """Runtime functions of a platform that a file leaves undefined."""
    pattern = _CUDA_CALL if platform == "cuda" else _HIP_CALL
    return sorted(u.name for u in elf.undefined if not u.weak and pattern.fullmatch(u.name))


def platforms_of(elf: Elf) -> set[str]:
    """GPU platforms that a file has device code of or links."""
    found = {platform for library in elf.needed if (platform := family(library))}
    found |= set(elf.registers)
    found |= {"cuda"} if elf.static_cudart else set()
    for section in elf.device:
        if section.name in (".nv_fatbin", "__nv_relfatbin"):
            found.add("cuda")
        elif section.name == ".hip_fatbin":
            found.add("rocm")
    return found


def infer(contents: Contents) -> tuple[str | None, str]:
    """The platform that a target is meant for, and what said so. None where platforms mix."""
    info = contents.build_info
    if info and info.text("PLATFORM") in PLATFORMS:
        return info.text("PLATFORM"), f"by PLATFORM in {info.file}"
    named = contents.name
    stated = platform_in_name(named)
    if stated:
        return stated, f"by the distribution's name {named}"
    local = contents.label
    marked = {platform for platform, _ in labels(local)} | ({"cpu"} if local == "cpu" else set())
    if len(marked) == 1:
        return marked.pop(), f"by the version's label {local}"
    linked: dict[str, str] = {}
    for name, elf in contents.natives.items():
        for platform in sorted(platforms_of(elf)):
            linked.setdefault(platform, name)
    if not linked:
        return "cpu", "no file links a GPU runtime or holds device code"
    if len(linked) == 1:
        ((platform, name),) = linked.items()
        return platform, f"by what {name} links"
    return None, "files of several platforms: " + ", ".join(
        f"{name} ({platform})" for platform, name in sorted(linked.items())
    )


def listing(names: Iterable[str], most: int = 12) -> str:
    """Names between commas, the first of them where there are many."""
    held = list(names)
    more = f" and {len(held) - most} more" if len(held) > most else ""
    return ", ".join(held[:most]) + more


def same_base(library: str, among: Iterable[str]) -> str | None:
    """A library of the same base name, or None."""
    base = library_base(library)
    return next((other for other in among if library_base(other) == base), None)
