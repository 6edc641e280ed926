"""The files of a source folder: what is code, what is copied, what cannot be read."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from port.errors import InputError
from port.hipify import manifest
from port.hipify.findings import Finding, of_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CODE_SUFFIXES = frozenset(
    (
        *(
            ".cu",
            ".cuh",
            ".hu",
            ".c",
            ".cc",
            ".cpp",
            ".cxx",
            ".c++",
            ".h",
            ".hh",
            ".hpp",
            ".hxx",
            ".h++",
        ),
        *(".inl", ".inc", ".ipp", ".tpp", ".tcc", ".txx", ".icc", ".impl", ".def", ".ixx", ".cppm"),
    )
)
"""Suffixes of files that are converted; a further `.in` (`config.h.in`) does not matter."""


@dataclass(frozen=True, slots=True)
class Input:
    """One file of the source folder. `path` is relative to it, with `/`."""

    path: str
    data: bytes
    mode: int
    is_code: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source folder holds: its files, those that failed, and what is to be said of it."""

    inputs: tuple[Input, ...]
    failed: tuple[str, ...]
    findings: tuple[Finding, ...]


def is_code(path: str, extensions: tuple[str, ...]) -> bool:
    """Whether `path` is converted; `extensions` are further suffixes, dot included."""
    name = path.removesuffix(".in").lower()
    return os.path.splitext(name)[1] in CODE_SUFFIXES or path.endswith(extensions or ("\0",))


def read(source: Path, extensions: tuple[str, ...]) -> Listing:
    """Read all of `source`, a folder or one file.

    Raises:
        InputError: `source` itself does not exist.

    """
    root = os.path.realpath(source)
    if not os.path.exists(root):
        raise InputError(f"{source} does not exist; wanted a source file or folder")
    inputs: list[Input] = []
    failed: list[str] = []
    findings: list[Finding] = []
    if not os.path.isdir(root):
        places: Iterator[tuple[str, str]] = iter([(os.path.basename(source), root)])
    else:
        places = _walk(root, findings, failed)
    for path, place in places:
        try:
            inputs.append(_read_file(path, place, extensions))
        except OSError as error:
            failed.append(path)
            findings.append(_failure(path, error))
    _find_twins([each.path for each in inputs], findings)
    return Listing(tuple(inputs), tuple(failed), tuple(findings))


def _read_file(path: str, place: str, extensions: tuple[str, ...]) -> Input:
    # Not blocking: the file may have become a pipe since it was listed.
    with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(0, "it is no regular file")
        return Input(path, file.read(), stat.S_IMODE(mode), is_code(path, extensions))


def _walk(root: str, findings: list[Finding], failed: list[str]) -> Iterator[tuple[str, str]]:
    """(relative path, real place) of every file below `root`, in order of path.

    A link to a file or folder inside `root` counts as what it names; such a folder is walked once
    and links to folders inside it are not, so that no loop is walked. Links out of `root` fail.
    """
    waiting = [("", root, False)]
    while waiting:
        folder, place, linked = waiting.pop()
        try:
            with os.scandir(place) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            failed.append(folder)
            findings.append(_failure(folder, error))
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if path == manifest.FOLDER:
                continue
            if entry.is_symlink():
                problem = _link_problem(root, entry.path, linked=linked)
                if problem:
                    failed.append(path)
                    findings.append(of_file(path, *problem))
                    continue
                real = os.path.realpath(entry.path)
                if os.path.isdir(real):
                    waiting.append((path, real, True))
                else:
                    yield path, real
            elif entry.is_dir(follow_symlinks=False):
                if os.path.splitext(path)[1] in (".cu", ".cuh"):
                    findings.append(_named_like_a_file(path))
                waiting.append((path, entry.path, linked))
            else:
                yield path, entry.path


def _link_problem(root: str, link: str, *, linked: bool) -> tuple[str, str, str] | None:
    """Why the link at `link` is not followed: rule, message, remedy."""
    target = os.path.realpath(link)
    if not os.path.exists(target):
        return (
            "link-dangling",
            f"the link names {os.readlink(link)}, which does not exist",
            "restore what it names, or remove the link",
        )
    if os.path.commonpath((root, target)) != root:
        return (
            "link-outside",
            f"the link leads to {target}, out of the source folder",
            "put the file into the tree, or convert a folder that holds both",
        )
    if os.path.isdir(target):
        folder = os.path.realpath(os.path.dirname(link))
        if linked or os.path.commonpath((folder, target)) == target:
            return (
                "link-loop",
                f"it leads to {os.path.relpath(target, root)} and is not followed: it may loop",
                "name the folder itself where the link is used",
            )
    return None


def _failure(path: str, error: OSError) -> Finding:
    reason = error.strerror or str(error)
    return of_file(
        path, "unreadable", f"cannot be read: {reason}", "make it a readable file, or remove it"
    )


def _named_like_a_file(path: str) -> Finding:
    return Finding(
        path,
        0,
        0,
        "folder-suffix",
        "warning",
        path.rsplit("/", 1)[-1],
        "a folder with the suffix of a source file; what it holds is converted",
        "rename it if a file was meant",
    )


def _find_twins(paths: list[str], findings: list[Finding]) -> None:
    seen: dict[str, str] = {}
    for path in paths:
        twin = seen.setdefault(path.casefold(), path)
        if twin != path:
            findings.append(
                Finding(
                    path,
                    0,
                    0,
                    "case-twins",
                    "warning",
                    path.rsplit("/", 1)[-1],
                    f"differs from {twin} only in upper and lower case",
                    "rename one: file systems that ignore case keep only one of them",
                )
            )
