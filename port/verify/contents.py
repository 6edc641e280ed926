"""Open a target and look at every file of it once: names, sizes, hashes, ELF facts, texts.

A wheel is read in memory, member by member, never unpacked to disk: an ELF member goes to a
memory file whose descriptor the limited child reads.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from port.errors import InputError, LimitError
from port.verify import metadata as texts
from port.verify.archive import MAX_ENTRIES, MAX_UNPACKED, Archive, unsafe
from port.verify.child import shared_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from importlib.metadata import Distribution

    from port.verify.child import ElfReader
    from port.verify.facts import Elf

_ELF_MAGIC = b"\x7fELF"
_CHUNK = 1 << 20
_AHEAD = 4
_MUCH = 8_000_000  # bytes
_TEXTS = ("METADATA", "WHEEL", "RECORD")


@dataclass(slots=True)
class File:
    """One file of a target. `digest(algorithm)` reads it again for other hashes than SHA-256."""

    name: str
    size: int
    sha256: str
    head: bytes
    digest: Callable[[str], bytes]
    text: bytes | None = None
    elf: Elf | None = None
    unreadable: str = ""


@dataclass(slots=True)
class Contents:
    """Everything that the checks look at; `kind` is wheel, folder, file or distribution."""

    target: str
    kind: str
    archive: Archive | None = None
    files: dict[str, File] = field(default_factory=dict)
    archive_problems: list[str] = field(default_factory=list)
    packed_size: int | None = None
    file_name: texts.FileName | None = None
    dist_info: str | None = None
    metadata: texts.Metadata | None = None
    wheel_file: texts.WheelFile | None = None
    build_info: texts.BuildInfo | None = None
    shared_with: tuple[str, ...] = ()
    """Other installed distributions that own files of this one."""

    def close(self) -> None:
        """Let go of the file; `File.digest` cannot be asked any more."""
        if self.archive is not None:
            self.archive.close()

    @property
    def name(self) -> str:
        """The distribution's name: METADATA's, else the file name's, else the installed one's."""
        if self.metadata and self.metadata.name:
            return self.metadata.name
        if self.file_name and self.file_name.name:
            return self.file_name.name
        return self.target if self.kind == "distribution" else ""

    @property
    def label(self) -> str:
        """The local segment of the version, where METADATA or the file name has one."""
        version = self.metadata.version if self.metadata else ""
        if not version and self.file_name:
            version = self.file_name.version
        return version.partition("+")[2]

    @property
    def natives(self) -> dict[str, Elf]:
        """ELF files for the host, by name."""
        return {f.name: f.elf for f in self.files.values() if f.elf and f.elf.is_host}

    @property
    def device_files(self) -> dict[str, Elf]:
        """ELF files for a GPU, by name."""
        return {f.name: f.elf for f in self.files.values() if f.elf and not f.elf.is_host}

    def dist_text(self, name: str) -> bytes | None:
        """A file of the dist-info folder, None where there is none."""
        file = self.files.get(f"{self.dist_info}/{name}") if self.dist_info else None
        return file.text if file else None


@dataclass(frozen=True, slots=True)
class _Source:
    """A file before it was looked at: how to get its bytes, and a descriptor if it is on disk."""

    name: str
    size: int
    chunks: Callable[[], Iterator[bytes]]
    path: Path | None = None


def open_target(target: str, *, installed: bool = False) -> Contents:
    """Read `target`: a wheel, a folder, a shared object or an installed distribution's name.

    With `installed` it is a distribution's name even where a path of that name exists.

    Raises:
        InputError: it is none of these, or damaged.
        LimitError: it is a bomb.

    """
    if not target:
        raise InputError("an empty name is no target")
    path = Path(target)
    if installed or not path.exists():
        return _distribution(target)
    if path.is_dir():
        contents = Contents(target, "folder")
        _look(contents, _folder(path))
        _texts(contents)
        return contents
    if not path.is_file():
        raise InputError(f"{target}: neither a file nor a folder")
    try:
        with path.open("rb") as file:
            head = file.read(4)
            if head == _ELF_MAGIC:
                return _shared_object(target, path)
            if head.startswith(b"PK") or path.suffix == ".whl":
                return _wheel(target, path)
    except OSError as error:
        raise InputError(f"{target}: cannot be read: {error.strerror}") from None
    raise InputError(
        f"{target}: wanted a wheel, a folder, a shared object or the name of an installed "
        f"distribution; this file begins with {head!r}"
    )


def _wheel(target: str, path: Path) -> Contents:
    archive = Archive(path)
    contents = Contents(target, "wheel", archive=archive)
    try:
        _members(contents, path, archive)
    except BaseException:
        contents.close()
        raise
    return contents


def _members(contents: Contents, path: Path, archive: Archive) -> None:
    sources = [
        _Source(entry.name, entry.size, lambda entry=entry: archive.chunks(entry))  # type: ignore[misc]
        for entry in archive.entries
        if not entry.is_folder
    ]
    contents.archive_problems = archive.problems
    contents.packed_size = path.stat().st_size
    contents.file_name = texts.read_file_name(path.name)
    _look(contents, sources)
    _texts(contents)
    if contents.metadata is None and path.suffix != ".whl":
        raise InputError(f"{path}: not a wheel: a ZIP archive without a dist-info folder")


def _shared_object(target: str, path: Path) -> Contents:
    contents = Contents(target, "file")
    _look(contents, [_on_disk(path.name, path)])
    (file,) = contents.files.values()
    if file.unreadable:
        raise InputError(f"{target}: {file.unreadable}")
    return contents


def _folder(path: Path) -> list[_Source]:
    sources = []
    for place, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            full = Path(place, name)
            if full.is_file() and not full.is_symlink():
                sources.append(_on_disk(full.relative_to(path).as_posix(), full))
        if len(sources) > MAX_ENTRIES:
            raise LimitError(f"{path}: more than {MAX_ENTRIES} files")
    total = sum(source.size for source in sources)
    if total > MAX_UNPACKED:
        raise LimitError(f"{path}: {total} bytes, at most {MAX_UNPACKED} are read")
    return sources


def _distribution(name: str) -> Contents:
    # Loading it costs as much as a small wheel's verdict, and only this kind of target uses it.
    from importlib import metadata  # noqa: PLC0415

    try:
        found = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        raise InputError(
            f"{name}: no such file, and no installed distribution of that name"
        ) from None
    contents = Contents(name, "distribution")
    root = Path(str(found.locate_file("")))
    sources = [
        _on_disk(item.as_posix(), full)
        for item in found.files or ()
        if (full := Path(str(found.locate_file(item)))).is_file() and item.suffix != ".pyc"
    ]
    _look(contents, sources)
    _texts(contents)
    contents.shared_with = _sharing(found, metadata.distributions(path=[str(root)]))
    return contents


def _sharing(own: Distribution, installed: Iterable[Distribution]) -> tuple[str, ...]:
    """Installed distributions that list a file which `own` lists as well."""
    names = {f.as_posix() for f in own.files or () if unsafe(f.as_posix()) is None}
    others = {
        other.name
        for other in installed
        if other.name != own.name and any(f.as_posix() in names for f in other.files or ())
    }
    return tuple(sorted(others))


def _on_disk(name: str, path: Path) -> _Source:
    def chunks() -> Iterator[bytes]:
        with path.open("rb") as file:
            while piece := file.read(_CHUNK):
                yield piece

    return _Source(name, path.stat().st_size, chunks, path)


def _look(contents: Contents, sources: list[_Source]) -> None:
    """Look at all files; where they are large, a few ahead of the child that reads ELF."""
    ahead = _ahead if sum(source.size for source in sources) > _MUCH else map
    with shared_reader() as reader:
        for file, descriptor in ahead(_look_at, sources):
            contents.files[file.name] = file
            if descriptor is not None:
                _read_elf(reader, contents.target, file, descriptor)


def _ahead(
    look: Callable[[_Source], tuple[File, int | None]], sources: Iterable[_Source]
) -> Iterator[tuple[File, int | None]]:
    """As map does, by two threads (hashing and unpacking let others run), a few results ahead."""
    # Loading it costs as much as a small wheel's verdict, and only large ones use it.
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    with ThreadPoolExecutor(2) as pool:
        waiting: deque[Future[tuple[File, int | None]]] = deque()
        left = iter(sources)
        try:
            while True:
                while len(waiting) < _AHEAD and (source := next(left, None)) is not None:
                    waiting.append(pool.submit(look, source))
                if not waiting:
                    return
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.add_done_callback(_drop)


def _drop(future: Future[tuple[File, int | None]]) -> None:
    if not future.cancelled() and future.exception() is None:
        descriptor = future.result()[1]
        if descriptor is not None:
            os.close(descriptor)


def _read_elf(reader: ElfReader, target: str, file: File, descriptor: int) -> None:
    try:
        file.elf = reader.read(descriptor, file.name)
    except LimitError as error:
        raise LimitError(f"{target}: {error}") from None
    except InputError as error:
        file.unreadable = str(error).removeprefix(f"{file.name}: ")
    finally:
        os.close(descriptor)


def _look_at(source: _Source) -> tuple[File, int | None]:
    """Hash a file, keep its text if it is one of the few that matter, or its bytes if it is ELF.

    The descriptor is the caller's to close.
    """
    name = PurePosixPath(source.name)
    wanted = name.name == "_build_info.py" or (
        name.parent.name.endswith(".dist-info") and name.name in _TEXTS
    )
    if wanted and source.size > texts.MAX_TEXT:
        raise LimitError(f"{source.name}: {source.size} bytes, at most {texts.MAX_TEXT} are read")
    digest = hashlib.sha256()
    head, kept = b"", bytearray()
    descriptor: int | None = None
    try:
        for piece in source.chunks():
            if not head:
                head = bytes(piece[:64])
                if head.startswith(_ELF_MAGIC):
                    descriptor = _descriptor(source)
            digest.update(piece)
            if wanted:
                kept += piece
            if descriptor is not None and source.path is None:
                _write(descriptor, piece)
    except BaseException:
        if descriptor is not None:
            os.close(descriptor)
        raise
    file = File(
        name=source.name,
        size=source.size,
        sha256=digest.hexdigest(),
        head=head,
        digest=lambda algorithm: _digest(source, algorithm),
        text=bytes(kept) if wanted else None,
    )
    return file, descriptor


def _descriptor(source: _Source) -> int:
    if source.path is not None:
        return os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)
    return os.memfd_create("member", os.MFD_CLOEXEC)


def _write(descriptor: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]


def _digest(source: _Source, algorithm: str) -> bytes:
    digest = hashlib.new(algorithm)
    for piece in source.chunks():
        digest.update(piece)
    return digest.digest()


def _texts(contents: Contents) -> None:
    """Find the dist-info folder and read what the target says of itself."""
    found = [
        PurePosixPath(name).parts[0]
        for name, file in contents.files.items()
        if file.text is not None
        and len(PurePosixPath(name).parts) == 2
        and PurePosixPath(name).name in ("METADATA", "WHEEL")
    ]
    if found:
        contents.dist_info = min(found, key=lambda name: (not _named(name, contents), name))
        metadata = contents.dist_text("METADATA")
        wheel_file = contents.dist_text("WHEEL")
        if metadata is not None:
            contents.metadata = texts.read_metadata(metadata)
        if wheel_file is not None:
            contents.wheel_file = texts.read_wheel_file(wheel_file)
    for name, file in contents.files.items():
        if PurePosixPath(name).name == "_build_info.py" and file.text is not None:
            contents.build_info = texts.read_build_info(name, file.text)
            return


def _named(dist_info: str, contents: Contents) -> bool:
    wanted = contents.file_name
    return wanted is not None and dist_info.lower().startswith(wanted.name.replace("-", "_"))
