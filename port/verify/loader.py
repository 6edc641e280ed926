"""Which bundled library each bundled file would find, as glibc's loader searches (ld.so(8)).

Libraries are loaded breadth first. A file with DT_RUNPATH searches that alone, for its own needs;
one without searches its DT_RPATH and those of the files that led to it. A library that is loaded
already, by file name or soname, is not searched again.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from port.verify.facts import Elf

_DATA = re.compile(r"[^/]+\.data/(?:platlib|purelib)/")
ORIGIN = re.compile(r"\$(?:ORIGIN|\{ORIGIN\})")


class Lost(NamedTuple):
    """A need that is in the target but would not be found: by whom, and which file it is."""

    file: str
    library: str
    bundled: str


def installed(name: str) -> str:
    """Where a file of a wheel goes, relative to the site folder."""
    return _DATA.sub("", name, count=1)


def entries(path: str | None) -> list[str]:
    """The folders of a run path."""
    return [] if path is None else path.split(":")


def expand(entry: str, name: str) -> str:
    """A run path entry as a folder relative to the site folder; it may lead out of it."""
    folder = posixpath.dirname(installed(name)) or "."
    return posixpath.normpath(ORIGIN.sub(lambda _: folder, entry))


def lost(natives: Mapping[str, Elf]) -> list[Lost]:
    """Needs for a bundled library that the loader would not find from any file it starts at."""
    files = {installed(name): name for name in natives}
    by_name: dict[str, str] = {}
    for name, elf in natives.items():
        by_name.setdefault(name.rpartition("/")[2], name)
        if elf.soname:
            by_name.setdefault(elf.soname, name)
    needed = {
        by_name[library] for elf in natives.values() for library in elf.needed if library in by_name
    }
    found: dict[tuple[str, str], Lost] = {}
    for name, elf in natives.items():
        # Python imports only what ends in .so, whatever a library exports.
        if name not in needed or (elf.is_extension and name.endswith(".so")):
            for item in _load(name, natives, files, by_name):
                found.setdefault((item.file, item.library), item)
    return list(found.values())


def _load(
    root: str, natives: Mapping[str, Elf], files: Mapping[str, str], by_name: Mapping[str, str]
) -> Iterator[Lost]:
    chains: dict[str, list[str]] = {root: [root]}
    loaded = {root.rpartition("/")[2], natives[root].soname}
    waiting = deque([root])
    while waiting:
        name = waiting.popleft()
        for library in natives[name].needed:
            if library in loaded or library not in by_name:
                continue
            file = _search(library, chains[name], natives, files)
            if file is None:
                yield Lost(name, library, by_name[library])
                file = by_name[library]
            loaded |= {library, file.rpartition("/")[2], natives[file].soname}
            if file not in chains:
                chains[file] = [file, *chains[name]]
                waiting.append(file)


def _search(
    library: str, chain: list[str], natives: Mapping[str, Elf], files: Mapping[str, str]
) -> str | None:
    own = natives[chain[0]]
    places: list[str] = []
    if own.runpath is not None:
        places = [expand(entry, chain[0]) for entry in entries(own.runpath)]
    else:
        for name in chain:
            if natives[name].runpath is None:
                places += [expand(entry, name) for entry in entries(natives[name].rpath)]
    for place in places:
        file = files.get(posixpath.normpath(posixpath.join(place, library)))
        if file is not None:
            return file
    return None
