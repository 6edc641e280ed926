"""The output folder: written as a whole or not at all, and never anything outside of it.

New contents are staged in `OUT/.hipify/stage-…`, so that a full disk or a kill leaves every output
as it was; then each file is renamed into place. Which files are this tool's is in the manifest,
and before the first rename in `pending.json`, so that a run after a kill knows its own. Writers of
one folder take turns on a lock of the record folder itself.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from port.errors import InputError, LimitError
from port.hipify.findings import Finding, of_file
from port.hipify.manifest import FILE, FOLDER, digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_PENDING = "pending.json"
_STAGE = "stage-"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a run would do, or did, to an output folder. Paths are relative to it."""

    written: tuple[str, ...]
    pruned: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def any(self) -> bool:
        """Whether there is a difference at all."""
        return bool(self.written or self.pruned)


def check_places(source: Path, out: Path) -> None:
    """Look whether one of the two folders lies in the other, by whatever name.

    Raises:
        InputError: it does, or they are the same.

    """
    inner, outer = os.path.realpath(source), os.path.realpath(out)
    if not os.path.isdir(inner):
        inner = os.path.dirname(inner)
        if _same(inner, outer):
            raise InputError(f"{out} is the folder of {source}; wanted an output folder elsewhere")
        if _contains(outer, inner):
            raise InputError(f"{source} lies in the output folder {out}; choose another folder")
        return
    if _same(inner, outer):
        raise InputError(f"{out} is the source folder itself; wanted an output folder elsewhere")
    if _contains(inner, outer):
        raise InputError(f"{out} lies in the source folder {source}; choose a folder beside it")
    if _contains(outer, inner):
        raise InputError(f"{source} lies in the output folder {out}; choose a folder beside it")


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def _contains(outer: str, inner: str) -> bool:
    """Whether `inner` lies below `outer`, also where a file system spells a folder in two ways."""
    parent = os.path.dirname(inner)
    while True:
        if _same(outer, parent):
            return True
        above = os.path.dirname(parent)
        if above == parent:
            return False
        parent = above


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    try:
        data = json.loads((folder / name).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def plan(out: Path, outputs: Mapping[str, tuple[bytes, int]]) -> Changes:
    """What writing `outputs` to `out` would change."""
    findings: list[Finding] = []
    ours = _ours(out)
    folders = _Folders(out)
    written = []
    for path, (data, mode) in outputs.items():
        state = _state(out, folders, path, data, mode)
        if state == "other" and path not in ours:
            findings.append(
                of_file(
                    path,
                    "output-foreign",
                    "stands in the output folder and was not written by hipify",
                    "move it away, or choose another output folder",
                )
            )
        elif state == "blocked":
            findings.append(
                of_file(
                    path,
                    "output-blocked",
                    "a link or folder in the output folder is in the way",
                    "remove it, or choose another output folder",
                )
            )
        elif state != "same":
            written.append(path)
    pruned = []
    for path in sorted(set(ours) - set(outputs)):
        current = None if folders.blocked(path) else _current(out, path)
        if current is None:
            continue
        if digest(current) == ours[path]:
            pruned.append(path)
        else:
            findings.append(
                of_file(
                    path,
                    "output-edited",
                    "has no source any more, but was edited by hand",
                    "remove it if the edits are not wanted",
                )
            )
    return Changes(tuple(written), tuple(pruned), tuple(findings))


def _ours(out: Path) -> dict[str, str]:
    """Hash by path of what earlier runs wrote, finished or not."""
    found: dict[str, str] = {}
    for name in (FILE, _PENDING):
        files = _read_json(out / FOLDER, name).get("files", {})
        if isinstance(files, dict):
            for path, entry in files.items():
                if _is_safe(path) and isinstance(entry, dict):
                    found[path] = str(entry.get("output", ""))
    return found


def _is_safe(path: str) -> bool:
    parts = path.split("/")
    return not path.startswith("/") and ".." not in parts and parts[0] != FOLDER


class _Folders:
    """Which folders below an output folder may hold outputs: those that are no link or file."""

    def __init__(self, out: Path) -> None:
        self._out = os.fspath(out)
        self._free = {"": True}

    def blocked(self, path: str) -> bool:
        """Whether a folder of `path` is a link or a file."""
        return not self._is_free(path.rpartition("/")[0])

    def _is_free(self, folder: str) -> bool:
        known = self._free.get(folder)
        if known is None:
            known = self._is_free(folder.rpartition("/")[0])
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                known = known and stat.S_ISDIR(os.lstat(f"{self._out}/{folder}").st_mode)
            self._free[folder] = known
        return known


def _current(out: Path, path: str) -> bytes | None:
    """The bytes of the regular file at `path`, None where there is none."""
    try:
        with open(
            os.open(f"{os.fspath(out)}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
        ) as file:
            return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except OSError:
        return None


def _state(out: Path, folders: _Folders, path: str, data: bytes, mode: int) -> str:
    if folders.blocked(path):
        return "blocked"
    try:
        status = os.lstat(f"{os.fspath(out)}/{path}")
    except OSError:
        return "absent"
    if not stat.S_ISREG(status.st_mode):
        return "blocked"
    if status.st_size != len(data) or _current(out, path) != data:
        return "other"
    return "same" if stat.S_IMODE(status.st_mode) == _output_mode(mode) else "mode"


def _output_mode(mode: int) -> int:
    return (mode & 0o777) | 0o600


def write(
    out: Path, outputs: Mapping[str, tuple[bytes, int]], records: Mapping[str, bytes]
) -> Changes:
    """Bring `out` to `outputs`, and its record folder to `records` (name to bytes).

    What is equal already is not touched; after an error the outputs are as they were.

    Raises:
        LimitError: the disk is full.
        InputError: the folder cannot be written.

    """
    try:
        (out / FOLDER).mkdir(parents=True, exist_ok=True)
        with _locked(out / FOLDER):
            return _write_locked(out, outputs, records)
    except OSError as error:
        if error.errno in _FULL:
            raise LimitError(
                f"no space left for the outputs in {out}; nothing was changed there; make room "
                "and run again"
            ) from None
        raise InputError(
            f"{out} cannot be written: {error.strerror} ({error.filename}); wanted a folder that "
            "may be written to"
        ) from None


def _stale_records(out: Path, records: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those of `records` that the record folder does not hold as they are."""
    record = out / FOLDER
    return {name: data for name, data in records.items() if _current(record, name) != data}


def is_settled(out: Path, records: Mapping[str, bytes]) -> bool:
    """Whether the record folder holds `records` and nothing that a killed run left."""
    with contextlib.suppress(OSError):
        left = [name for name in os.listdir(out / FOLDER) if name.startswith(_STAGE)]
        return not left and not _stale_records(out, records)
    return False


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write_locked(
    out: Path, outputs: Mapping[str, tuple[bytes, int]], records: Mapping[str, bytes]
) -> Changes:
    record = out / FOLDER
    for left in record.glob(f"{_STAGE}*"):
        shutil.rmtree(left, ignore_errors=True)
    changes = plan(out, outputs)
    stale = _stale_records(out, records)
    if not changes.any and not stale:
        return changes
    stage = record / f"{_STAGE}{os.getpid()}-{os.urandom(8).hex()}"
    stage.mkdir(0o700)
    try:
        for number, path in enumerate(changes.written):
            data, mode = outputs[path]
            _stage(stage / str(number), data, _output_mode(mode))
        for name, data in stale.items():
            _stage(stage / name, data, 0o644)
        pending = {path: {"output": digest(outputs[path][0])} for path in changes.written}
        _stage(stage / _PENDING, json.dumps({"files": pending}).encode(), 0o644)
        (stage / _PENDING).replace(record / _PENDING)
        for number, path in enumerate(changes.written):
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (stage / str(number)).replace(out / path)
        for path in changes.pruned:
            _prune(out, path)
        for name in sorted(stale, reverse=True):
            (stage / name).replace(record / name)
        (record / _PENDING).unlink()
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return changes


def _stage(place: Path, data: bytes, mode: int) -> None:
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(handle, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), mode)


def _prune(out: Path, path: str) -> None:
    """Remove an output and the folders that it leaves empty."""
    (out / path).unlink(missing_ok=True)
    for folder in (out / path).relative_to(out).parents:
        if folder.name == "":
            break
        try:
            (out / folder).rmdir()
        except OSError:
            break
