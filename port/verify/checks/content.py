"""V13 and V19 to V22: what is in the target, apart from how it is linked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.text import counted
from port.verify.case import listing
from port.verify.report import failed, passed
from port.verify.words import is_shared_name, library_base

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.verify.case import Case
    from port.verify.report import Check

_LINKER_SCRIPT = re.compile(rb"\s*(/\*|INPUT|GROUP|OUTPUT_FORMAT|SEARCH_DIR)")
# Two libraries that manage the same device state: whichever ends second frees it again.
_RIVALS = (("librocm_smi64", "libamd_smi"),)
_MACHINES = {
    "x86_64": "EM_X86_64",
    "aarch64": "EM_AARCH64",
    "ppc64le": "EM_PPC64",
    "s390x": "EM_S390",
    "riscv64": "EM_RISCV",
    "armv7l": "EM_ARM",
    "i686": "EM_386",
}


def size(case: Case) -> Iterator[Check]:
    """V13: the wheel and its files stay inside the policy's budgets."""
    contents = case.contents
    total = contents.packed_size
    whole = sum(file.size for file in contents.files.values()) if total is None else total
    wrong = False
    budget = case.policy.size_wheel
    if budget is not None and contents.kind == "wheel" and whole > budget:
        wrong = True
        yield failed(
            "V13",
            f"the wheel has {whole} bytes, the budget is {budget}",
            "look for a bundled vendor library, or raise size.wheel in the policy",
        )
    for file in contents.files.values():
        if case.policy.size_file is not None and file.size > case.policy.size_file:
            wrong = True
            yield failed(
                "V13",
                f"it has {file.size} bytes, the budget is {case.policy.size_file}",
                "keep it out of the wheel, strip it, or raise size.file in the policy",
                file.name,
            )
    if not wrong:
        largest = max(contents.files.values(), key=lambda file: file.size, default=None)
        told = f"; largest: {largest.name}, {largest.size}" if largest else ""
        yield passed("V13", f"{whole} bytes in all{told}")


def archive(case: Case) -> Iterator[Check]:
    """V19: every reader of the archive sees the same files."""
    problems = case.contents.archive_problems
    if problems:
        yield failed(
            "V19",
            f"the archive can be read in two ways: {listing(problems, 5)}",
            "pack the wheel again with one tool (wheel pack)",
        )
    else:
        yield passed(
            "V19", "one way to read it" if case.contents.kind == "wheel" else "not an archive"
        )


def native_code(case: Case) -> Iterator[Check]:
    """V20: native files can be read, are for the tag's machine, and are there if wanted."""
    wrong = False
    scripts = []
    for file in case.contents.files.values():
        if file.unreadable:
            wrong = True
            yield failed("V20", file.unreadable, "build or copy the file again", file.name)
        elif is_shared_name(file.name) and file.elf is None:
            if _LINKER_SCRIPT.match(file.head):
                scripts.append(file.name)
            else:
                wrong = True
                yield failed(
                    "V20",
                    f"named like a shared object, but not ELF: it begins with {file.head[:8]!r}",
                    "package the library itself (not a placeholder or another system's file)",
                    file.name,
                )
    machines = _machines(case)
    for name, elf in case.natives.items():
        if machines and elf.machine not in machines:
            wrong = True
            yield failed(
                "V20",
                f"built for {elf.machine}, the tag is for {listing(sorted(machines))}",
                "build this file for the tag's machine",
                name,
            )
    if wrong:
        return
    noted = f"; linker scripts: {listing(scripts)}" if scripts else ""
    if case.natives:
        held = sorted({elf.machine for elf in case.natives.values()})
        yield passed("V20", f"{counted(len(case.natives), 'native file')}, {listing(held)}{noted}")
    elif case.platform in ("cuda", "rocm") and not case.contents.device_files:
        yield failed(
            "V20",
            f"no native code{noted}",
            f"build the native modules for {case.platform}",
            severity=case.severity,
        )
    else:
        yield passed("V20", f"no native code{noted}")


def _machines(case: Case) -> set[str]:
    contents = case.contents
    tags = contents.file_name.tags if contents.file_name else frozenset()
    platforms = {tag.rpartition("-")[2] for tag in tags}
    found = {
        machine
        for platform in platforms
        for suffix, machine in _MACHINES.items()
        if platform.endswith(f"_{suffix}")
    }
    return found if all("linux" in platform for platform in platforms) else set()


def stand_in(case: Case) -> Iterator[Check]:
    """V21: a library that only plays a GPU runtime for tests is never shipped."""
    found = [name for name, elf in case.natives.items() if elf.standin]
    for name in found:
        yield failed(
            "V21",
            "a stand-in for tests (it has the symbol monarch_standin)",
            "build and link against the real runtime",
            name,
        )
    if not found:
        yield passed("V21", "no stand-in for tests")


def _twins(case: Case, base: str, names: list[str]) -> bool:
    """Whether files are several builds of a library. Equal copies under the names that a linker
    and a loader use (a wheel holds no links) are one build, copies under several hashes are not.
    """
    last = {name.rpartition("/")[2] for name in names}
    hashed = {name for name in last if not name.startswith(f"{base}.")}
    builds = {case.contents.files[name].sha256 for name in names}
    return base.startswith("lib") and len(last) > 1 and (len(builds) > 1 or len(hashed) > 1)


def library_twins(case: Case) -> Iterator[Check]:
    """V22: no library is there twice, nor beside one that manages the same devices."""
    wrong = False
    held: dict[str, list[str]] = {}
    for name in case.contents.files:
        if name in case.natives and is_shared_name(name):
            held.setdefault(library_base(name), []).append(name)
    for base, names in held.items():
        if _twins(case, base, names):
            wrong = True
            yield failed(
                "V22",
                f"{base} is in the target more than once: {listing(names)}",
                "let one repair run graft all libraries, from one build of each",
                names[0],
                severity="warning",
            )
    users = {
        library_base(library): library for elf in case.natives.values() for library in elf.needed
    }
    users |= {base: names[0] for base, names in held.items()}
    for one, two in _RIVALS:
        if one in users and two in users:
            wrong = True
            yield failed(
                "V22",
                f"{users[one]} and {users[two]} in one process free the same memory at exit",
                f"use {two} alone",
                severity="warning",
            )
    if not wrong:
        yield passed("V22", "no library is there twice")
