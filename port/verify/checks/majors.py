"""V04 and V12: the runtime's major is the declared one, and labels are made of versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from port.verify.case import listing
from port.verify.report import failed, passed
from port.verify.words import labels, majors, runtime_major

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.verify.case import Case
    from port.verify.report import Check


def linked_major(case: Case) -> Iterator[Check]:
    """V04: the major of the linked runtime is the one that the target declares."""
    linked = list(_linked(case))
    declared = list(_declared(case))
    wrong = False
    for name, platform, library, major in linked:
        own = labels(_base(name))
        told = [("its file name", *label) for label in own] or declared
        for origin, kind, number in told:
            if kind != platform or major in majors(kind, number) or _minor(number, major):
                continue
            wrong = True
            yield failed(
                "V04",
                f"needs {library} (major {major}), but {origin} says {kind} {number}",
                f"build against {kind} {number}, or correct the label",
                name,
            )
    for platform in ("cuda", "rocm"):
        free = {
            major: f"{library} in {name}"
            for name, kind, library, major in linked
            if kind == platform and not labels(_base(name))
        }
        if len(free) > 1:
            wrong = True
            yield failed(
                "V04",
                f"several majors of the {platform} runtime in one target: "
                + ", ".join(free[major] for major in sorted(free)),
                "build all files against one toolkit",
            )
    if not wrong:
        found = sorted({library for _, _, library, _ in linked})
        said = ", ".join(f"{kind} {number} by {origin}" for origin, kind, number in declared)
        yield passed("V04", f"linked: {listing(found) or 'none'}; declared: {said or 'nothing'}")


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _linked(case: Case) -> Iterator[tuple[str, str, str, int]]:
    for name, elf in case.natives.items():
        for library in elf.needed:
            told = runtime_major(library)
            if told and case.platform in (None, told[0]):
                yield name, told[0], library, told[1]


def _declared(case: Case) -> Iterator[tuple[str, str, str]]:
    """Where a major is declared: origin, platform, number as spelled."""
    info = case.contents.build_info
    if info:
        told = runtime_major(info.text("RUNTIME_SONAME"))
        if told:
            yield f"RUNTIME_SONAME in {info.file}", told[0], str(told[1])
        version = info.text("RUNTIME_VERSION")
        if case.platform in ("cuda", "rocm") and re.match(r"\d+\.\d+", version):
            yield f"RUNTIME_VERSION in {info.file}", case.platform, version
    for label in labels(case.contents.name):
        yield "the distribution's name", *label
    local = case.contents.label
    for label in labels(local):
        yield f"the version's label +{local}", *label


def _minor(number: str, major: int) -> int:
    """The minor past 9 that makes `number` 10 * major + minor; 0 where there is none."""
    minor = int(number) - 10 * major if number.isdigit() and len(number) == 2 else 0
    return minor if 10 <= minor <= 29 else 0


def version_label(case: Case) -> Iterator[Check]:
    """V12: a runtime label is a version's text, not a number made by arithmetic."""
    local = case.contents.label
    told = [("", f"the version's label +{local}", *label) for label in labels(local)]
    linked: dict[str, set[tuple[str, int]]] = {"": set()}
    for name, platform, _, major in _linked(case):
        linked.setdefault(name, set()).add((platform, major))
        linked[""].add((platform, major))
        told += [(name, f"the file name {_base(name)}", *label) for label in labels(_base(name))]
    wrong = list(_recorded(case, local))
    for file, origin, platform, number in dict.fromkeys(told):
        for kind, major in sorted(linked[file]):
            minor = _minor(number, major)
            if kind == platform and minor:
                wrong.append(
                    failed(
                        "V12",
                        f"{origin} says {platform}{number}, which is 10 * {major} + {minor}: the "
                        f"label of {platform} {major}.{minor} is {platform}{major}.{minor}",
                        "make labels from the version's text (packaging.version), not by sums",
                        file,
                    )
                )
    yield from wrong
    if not wrong:
        found = dict.fromkeys(f"{platform}{number}" for _, _, platform, number in told)
        yield passed("V12", f"labels: {listing(found)}" if found else "no runtime label")


def _recorded(case: Case, local: str) -> Iterator[Check]:
    info = case.contents.build_info
    stated = info.text("RUNTIME_VERSION") if info else ""
    if not info or not stated:
        return
    try:
        release = Version(stated).release
    except InvalidVersion:
        yield failed(
            "V12",
            f"RUNTIME_VERSION is {stated!r}, wanted a version such as 7.12",
            "take it from the toolkit's own version file",
            info.file,
        )
        return
    for platform, number in labels(local):
        parts = tuple(int(part) for part in re.split(r"[._-]", number))
        if len(parts) > 1 and parts[0] == release[0] and parts != release[: len(parts)]:
            yield failed(
                "V12",
                f"the version's label is {platform}{number}, RUNTIME_VERSION is {stated}",
                f"label it {platform}{'.'.join(map(str, release[:2]))}",
                info.file,
            )
