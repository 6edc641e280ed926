"""The development corpus: source distributions pinned by hash, fetched into a cache, never kept."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HERE = Path(__file__).resolve().parent
KERNEL_SUFFIXES = (".cu", ".cu.cc")
UNIT_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c")
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include(?:_next)?[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)


class CorpusError(Exception):
    """The corpus cannot be had as it is pinned; the message says which part and why."""


@dataclass(frozen=True, slots=True)
class Project:
    """One project: where it comes from and how its units are compiled.

    `roots` are the folders (relative to the distribution's top) that are converted, `include`
    search paths in them, `beside` search paths in the rest of the distribution, `system` names of
    shared header sets. `generated` are files that the project's own build writes,
    `hip_define` stands for `define` where that names CUDA functions, or where the project's own
    build for ROCm defines others. At most `sample` units are compiled, chosen by a hash of their
    names.
    """

    name: str
    version: str
    sha256: str
    license: str
    roots: tuple[str, ...]
    include: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    define: tuple[str, ...] = ()
    hip_define: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    force_include: tuple[str, ...] = ()
    std: str = "c++17"
    generated: tuple[tuple[str, str], ...] = ()
    sample: int = 24
    quick: bool = False
    driver: bool = False

    @property
    def pin(self) -> str:
        return f"{self.name}=={self.version}"


def load(path: Path = HERE / "corpus.toml") -> tuple[Project, ...]:
    """Read the corpus; raises `CorpusError` for an unknown key."""
    with path.open("rb") as stream:
        entries = tomllib.load(stream)["project"]
    projects = []
    for entry in entries:
        values: dict[str, Any] = {
            key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()
        }
        values["generated"] = tuple(entry.get("generated", {}).items())
        try:
            projects.append(Project(**values))
        except TypeError as error:
            raise CorpusError(f"{path}: {entry.get('name', '?')}: {error}") from None
    return tuple(projects)


def fetch(project: Project, cache: Path) -> Path:
    """The archive of `project` in `cache`, downloaded once and checked against its pin."""
    folder = cache / "sdist"
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file() and _sha256(path) == project.sha256:
            return path
    command = [sys.executable, "-m", "unearth", project.pin, "--no-binary", "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for path in folder.iterdir():
        if path.is_file() and _sha256(path) == project.sha256:
            return path
    raise CorpusError(
        f"{project.pin}: no source distribution with sha256 {project.sha256} "
        f"(download ended with status {done.returncode}): {done.stderr.strip()[-300:]}"
    )


def unpack(project: Project, cache: Path) -> Path:
    """The unpacked tree of `project`; only regular files, no name leaves the folder."""
    target = cache / "src" / f"{project.name}-{project.version}"
    if (target / ".complete").exists():
        return target
    archive = fetch(project, cache)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = Path(member.name).parts[1:]
            if not member.isfile() or not parts or ".." in parts:
                continue
            stream = tar.extractfile(member)
            if stream is None:
                continue
            path = target.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stream.read())
    (target / ".complete").touch()
    return target


def stage(project: Project, cache: Path) -> Path:
    """The folders of `project` that are converted, copied together as one source tree."""
    tree = unpack(project, cache)
    staged = cache / "stage" / f"{project.name}-{project.version}"
    if staged.exists():
        return staged
    partial = staged.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for root in project.roots:
        source = tree / root
        if source.is_dir():
            shutil.copytree(source, partial / root, dirs_exist_ok=True)
        elif source.is_file():
            (partial / root).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, partial / root)
        else:
            raise CorpusError(f"{project.pin}: the distribution has no {root}")
    for name, text in project.generated:
        (partial / name).write_text(text)
    partial.rename(staged)
    return staged


def units(project: Project, top: Path, names: Callable[[bytes], bool]) -> list[str]:
    """The sampled units below `top` whose bytes `names` accepts, in order of their names."""
    found = []
    for path in sorted(top.rglob("*")):
        relative = str(path.relative_to(top))
        if path.suffix not in UNIT_SUFFIXES or not path.is_file():
            continue
        if relative.startswith(project.exclude):
            continue
        if names(path.read_bytes()):
            found.append(relative)
    found.sort(key=lambda name: hashlib.sha256(name.encode()).digest())
    return sorted(found[: project.sample])


def with_includes(project: Project, top: Path, chosen: Iterable[str]) -> list[str]:
    """`chosen` and the files of `top` that they include, directly or through others, by name.

    Which arm of a condition an include is in does not matter.
    """
    waiting, found = list(chosen), set[str]()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for included in _INCLUDE.findall((top / name).read_bytes()):
            path = included.decode("utf-8", "replace")
            places = [(top / name).parent / path, *(top / each / path for each in project.include)]
            inside = (place.resolve() for place in places if place.is_file())
            waiting += [
                str(place.relative_to(top.resolve()))
                for place in inside
                if place.is_relative_to(top.resolve())
            ]
    return sorted(found)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
