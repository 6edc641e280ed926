"""V11: the platform tag promises what the symbols keep."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from port.verify.case import listing
from port.verify.report import failed, passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.verify.case import Case
    from port.verify.report import Check

# glibc minor of a tag -> newest GLIBCXX and CXXABI that such systems have (PEP 600 policies; the
# libstdc++ of the oldest distribution that carries this glibc).
LIMITS: dict[int, tuple[str, str]] = {
    5: ("3.4.8", "1.3.1"),
    12: ("3.4.13", "1.3.3"),
    17: ("3.4.19", "1.3.7"),
    24: ("3.4.22", "1.3.10"),
    27: ("3.4.24", "1.3.11"),
    31: ("3.4.28", "1.3.12"),
    34: ("3.4.29", "1.3.13"),
    35: ("3.4.30", "1.3.13"),
    39: ("3.4.33", "1.3.15"),
}
_LEGACY = {"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}
# The oldest image that PyPA still maintains: a wheel has no reason to be newer without need.
_USUAL_FLOOR = 28
_PREFIXES = ("GLIBC", "GLIBCXX", "CXXABI")
_DT_RELR = "2.36"


def platform_tag(case: Case) -> Iterator[Check]:
    """V11: GLIBC, GLIBCXX and CXXABI versions against the platform tags."""
    tags = _tags(case)
    if not tags:
        yield passed("V11", f"no tag to hold it to; needs {_told(_needs(case)) or 'no versions'}")
        return
    if not case.natives:
        yield passed("V11", "no native code")
        return
    platforms = sorted({tag.rpartition("-")[2] for tag in tags})
    if "any" in platforms:
        yield failed(
            "V11",
            f"tagged for any platform, but it holds {listing(case.natives, 3)}",
            "build the wheel with a platform tag (Root-Is-Purelib: false)",
        )
        return
    minors = [minor for name in platforms if (minor := glibc_minor(name)) is not None]
    if not minors:
        yield from _other(case, platforms)
        return
    wrong = list(_too_old(case, min(minors), platforms))
    yield from wrong
    if not wrong:
        yield from _fitting(case, min(minors), platforms)


def glibc_minor(platform: str) -> int | None:
    """The minor of glibc 2 that a manylinux tag promises to run on, None for other tags."""
    found = re.match(r"manylinux_2_(\d+)_", platform)
    if found:
        return int(found.group(1))
    return next((m for old, m in _LEGACY.items() if platform.startswith(f"{old}_")), None)


def _tags(case: Case) -> frozenset[str]:
    contents = case.contents
    if contents.file_name and contents.file_name.tags:
        return contents.file_name.tags
    return contents.wheel_file.tags if contents.wheel_file else frozenset()


def _limits(minor: int) -> dict[str, Version]:
    known = max((m for m in LIMITS if m <= minor), default=min(LIMITS))
    cxx, abi = LIMITS[known]
    return {"GLIBC": Version(f"2.{minor}"), "GLIBCXX": Version(cxx), "CXXABI": Version(abi)}


def _needs(case: Case) -> dict[str, tuple[Version, str, str]]:
    """Per prefix the newest version needed, as spelled, and who needs it. What a bundled library
    provides is no need of the machine's.
    """
    newest: dict[str, tuple[Version, str, str]] = {}
    for name, elf in case.natives.items():
        for file, versions in elf.version_needs.items():
            if case.bundled(file) is not None:
                continue
            for spelled in versions:
                prefix, _, number = spelled.partition("_")
                if prefix not in _PREFIXES:
                    continue
                number = _DT_RELR if number == "ABI_DT_RELR" else number
                try:
                    version = Version(number)
                except InvalidVersion:
                    continue
                if prefix not in newest or version > newest[prefix][0]:
                    newest[prefix] = (version, spelled, name)
    return newest


def _told(needs: dict[str, tuple[Version, str, str]]) -> str:
    return ", ".join(spelled for _, spelled, _ in needs.values())


def _smallest(needs: dict[str, tuple[Version, str, str]]) -> int:
    glibc = needs["GLIBC"][0].minor if "GLIBC" in needs else min(LIMITS)
    fits = [
        minor
        for minor in sorted({*LIMITS, glibc})
        if all(version <= _limits(minor)[prefix] for prefix, (version, _, _) in needs.items())
    ]
    return fits[0] if fits else max(*LIMITS, glibc)


def _too_old(case: Case, minor: int, platforms: list[str]) -> Iterator[Check]:
    needs = _needs(case)
    for prefix, limit in _limits(minor).items():
        if prefix in needs and needs[prefix][0] > limit:
            _, spelled, name = needs[prefix]
            yield failed(
                "V11",
                f"needs {spelled}, but the tag {listing(platforms)} promises {prefix}_{limit}",
                f"tag it manylinux_2_{_smallest(needs)} (auditwheel repair), or build in an older "
                "image",
                name,
            )


def _fitting(case: Case, minor: int, platforms: list[str]) -> Iterator[Check]:
    needs = _needs(case)
    smallest = _smallest(needs)
    newest = case.policy.tag_newest
    if newest and minor > int(newest.rpartition("_")[2]):
        yield failed(
            "V11",
            f"tagged {listing(platforms)}, the policy wants {newest} at most",
            "build in an older image",
        )
    elif minor > max(smallest, _USUAL_FLOOR):
        yield failed(
            "V11",
            f"tagged {listing(platforms)}, but the symbols ask for manylinux_2_{smallest} alone "
            f"({_told(needs) or 'no versions'}): systems that could run it are turned away",
            f"tag it manylinux_2_{max(smallest, _USUAL_FLOOR)} (auditwheel repair)",
            severity="warning",
        )
    else:
        yield passed("V11", f"{listing(platforms)} covers {_told(needs) or 'all symbols'}")


def _other(case: Case, platforms: list[str]) -> Iterator[Check]:
    if all(name.startswith("musllinux_") for name in platforms):
        if "GLIBC" in _needs(case):
            _, spelled, name = _needs(case)["GLIBC"]
            yield failed(
                "V11",
                f"tagged {listing(platforms)}, but it needs {spelled} of glibc",
                "build in a musllinux image, or tag it manylinux",
                name,
            )
        else:
            yield passed("V11", f"{listing(platforms)}: no glibc version is needed")
    elif all(name.startswith("linux_") for name in platforms) and case.contents.kind == "wheel":
        yield failed(
            "V11",
            f"tagged {listing(platforms)}: not repaired, it promises no system and no index "
            f"takes it; the symbols ask for manylinux_2_{_smallest(_needs(case))}",
            "auditwheel repair",
            severity="error" if case.policy.tag_newest else "warning",
        )
    else:
        yield passed("V11", f"{listing(platforms)}: needs {_told(_needs(case)) or 'no versions'}")
