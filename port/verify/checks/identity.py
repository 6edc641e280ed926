"""V14: names and versions agree wherever they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from port.verify.case import listing
from port.verify.metadata import canonical
from port.verify.report import failed, passed
from port.verify.words import platform_in_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.verify.case import Case
    from port.verify.report import Check


def identity(case: Case) -> Iterator[Check]:
    """V14: METADATA, file name, dist-info folder, WHEEL and build info say the same."""
    contents = case.contents
    wrong = list(_disagreements(case))
    for detail, remedy, file in wrong:
        yield failed("V14", detail, remedy, file)
    if not wrong:
        metadata = contents.metadata
        yield passed(
            "V14",
            f"{metadata.name} {metadata.version}, the same in all places"
            if metadata
            else "no metadata to compare",
        )


def _disagreements(case: Case) -> Iterator[tuple[str, str, str]]:
    contents = case.contents
    metadata, file_name = contents.metadata, contents.file_name
    where = f"{contents.dist_info}/METADATA"
    again = "build the wheel again; do not rename it by hand"
    if contents.kind == "wheel" and metadata is None:
        yield "no dist-info folder with METADATA", "build the wheel with a PEP 517 backend", ""
        return
    if file_name and file_name.wrong:
        yield f"the file name is not a wheel's: {file_name.wrong}", again, ""
    if metadata is None:
        return
    if not metadata.name or not metadata.version:
        yield "METADATA lacks Name or Version", again, where
    version = _version(metadata.version)
    if metadata.version and version is None:
        yield f"Version {metadata.version!r} is not a PEP 440 version", again, where
    if file_name and not file_name.wrong:
        if canonical(metadata.name) != file_name.name:
            yield f"Name is {metadata.name}, the file name says {file_name.name}", again, where
        if version is not None and version != _version(file_name.version):
            yield f"Version is {version}, the file name says {file_name.version}", again, where
        stated = contents.wheel_file.tags if contents.wheel_file else frozenset()
        if contents.kind == "wheel" and not contents.wheel_file:
            yield "no WHEEL file", again, contents.dist_info or ""
        elif stated != file_name.tags:
            yield (
                (
                    f"WHEEL's tags are {listing(sorted(stated), 6) or 'none'}, the file name's "
                    f"{listing(sorted(file_name.tags), 6)}"
                ),
                "retag with a tool that rewrites WHEEL and RECORD (wheel tags)",
                f"{contents.dist_info}/WHEEL",
            )
    if contents.kind == "wheel" and contents.dist_info:
        name, _, own = contents.dist_info.removesuffix(".dist-info").rpartition("-")
        if canonical(name) != canonical(metadata.name) or _version(own) != version:
            yield f"the folder {contents.dist_info} is not named after METADATA", again, where
    yield from _platforms(case)
    yield from _owners(case)


def _platforms(case: Case) -> Iterator[tuple[str, str, str]]:
    contents = case.contents
    info, metadata = contents.build_info, contents.metadata
    named = platform_in_name(metadata.name) if metadata else None
    if named and case.platform and named != case.platform:
        yield (
            (
                f"the distribution's name {metadata.name if metadata else ''} says {named}, but "
                f"the platform is {case.platform} ({case.how})"
            ),
            "give each platform its own distribution name",
            f"{contents.dist_info}/METADATA",
        )
    if not info or not metadata:
        return
    stated = info.text("PLATFORM")
    if stated and case.platform and stated != case.platform:
        yield (
            f"PLATFORM is {stated}, but the platform is {case.platform} ({case.how})",
            f"build with GPU_PLATFORM={case.platform}",
            info.file,
        )
    version = info.text("VERSION")
    if version and _version(version) != _version(metadata.version):
        yield (
            f"VERSION is {version}, METADATA's Version is {metadata.version}",
            "build the wheel again",
            info.file,
        )
    soname = info.text("RUNTIME_SONAME")
    if soname and case.natives and not any(soname in elf.needed for elf in case.natives.values()):
        yield (
            f"RUNTIME_SONAME is {soname}, but no file has it in NEEDED",
            "build the wheel again",
            info.file,
        )


def _owners(case: Case) -> Iterator[tuple[str, str, str]]:
    if case.contents.shared_with:
        others = listing(case.contents.shared_with)
        own = case.contents.metadata.name if case.contents.metadata else case.contents.target
        yield (
            f"installed files belong to {own} and to {others} as well: the last one installed won",
            (
                f"pip uninstall --yes {own} {' '.join(case.contents.shared_with)}, then install "
                "the one that is wanted"
            ),
            "",
        )


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
