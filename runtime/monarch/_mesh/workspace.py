"""Folders of the program, brought to the hosts it uses: only what differs travels, as messages."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from monarch._mesh.host_mesh import HostMesh

__all__ = ["Workspace", "sync"]

ROOT = "WORKSPACE_DIR"
_SKIPPED = frozenset({"__pycache__", ".git"})
_PIECE = 8 << 20  # bytes of a file in one message
_PART = ".monarch-part"

Manifest = dict[str, tuple[int, int, int]]
"""Size in bytes, time of change in nanoseconds and mode of each file, by path below a folder."""


class Workspace:
    """Folders that `HostMesh.sync_workspace` brings to hosts.

    Each goes below the folder that the variable `WORKSPACE_DIR` names on the host, which the worker
    there was started with.

    Args:
        dirs: local folders, each of which keeps its last name there; or a mapping of folders to
            the paths they get there, "" for `WORKSPACE_DIR` itself.
        env: None. Environments of conda are not copied.

    Raises:
        ValueError: a path there is absolute or leads upwards, two folders have the same one, or
            `env` is given.

    """

    def __init__(
        self,
        dirs: Sequence[str | os.PathLike[str]] | Mapping[Any, str],
        env: str | os.PathLike[str] | None = None,
    ) -> None:
        if env is not None:
            raise ValueError(
                f"Workspace(env={str(env)!r}): environments are not copied; install one on each "
                "host and name its interpreter with HostMesh.with_python_executable"
            )
        pairs = (
            [(Path(one), there) for one, there in dirs.items()]
            if hasattr(dirs, "items")
            else [(Path(one), Path(one).resolve().name) for one in dirs]
        )
        self.dirs: dict[str, Path] = {}
        for local, there in pairs:
            name = PurePosixPath(there)
            if name.is_absolute() or ".." in name.parts:
                raise ValueError(
                    f"Workspace: {str(local)!r} cannot go to {there!r}: a path below "
                    f"{ROOT} is wanted, without '..'"
                )
            if str(name) in self.dirs:
                raise ValueError(
                    f"Workspace: {str(self.dirs[str(name)])!r} and {str(local)!r} would both go to "
                    f"{str(name)!r}; give a mapping of folders to paths"
                )
            self.dirs[str(name)] = local

    def __repr__(self) -> str:
        return f"<Workspace {', '.join(f'{one} → {there}' for there, one in self.dirs.items())}>"


class Receiver(Actor):
    """Takes the files on a host."""

    @endpoint
    def missing(self, name: str, files: Manifest) -> list[str]:
        """Which files are not here as they are there; others below the folder are removed."""
        top = _place(name)
        top.mkdir(parents=True, exist_ok=True)
        here = manifest(top)
        for path in here.keys() - files.keys():
            (top / path).unlink()
        return sorted(path for path, stat in files.items() if here.get(path) != stat)

    @endpoint
    def write(self, name: str, path: str, data: bytes, stat: tuple[int, int, int] | None) -> None:
        """Take a piece of a file; the last one comes with its size, time and mode."""
        target = _place(name) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + _PART)
        with part.open("ab") as file:
            file.write(data)
        if stat is not None:
            _size, changed, mode = stat
            part.chmod(mode)
            os.utime(part, ns=(changed, changed))
            part.replace(target)

    @endpoint
    def resolved(self, name: str) -> tuple[str, int, int]:
        """The folder here, with device and inode: whether it is the caller's own."""
        top = _place(name)
        top.mkdir(parents=True, exist_ok=True)
        return str(top), *_identity(top)


class Reloader(Actor):
    """Loads modules again whose files have changed."""

    @endpoint
    def reload(self, files: list[str]) -> list[str]:
        """The modules that were loaded again, of those that are loaded here."""
        import importlib  # noqa: PLC0415 - rarely
        import sys  # noqa: PLC0415

        importlib.invalidate_caches()
        wanted = {os.path.realpath(file) for file in files}
        found = []
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if file is not None and name != "__main__" and os.path.realpath(file) in wanted:
                importlib.reload(module)
                found.append(name)
        return found


async def sync(hosts: HostMesh, workspace: Workspace, *, auto_reload: bool) -> None:
    """As `HostMesh.sync_workspace`."""
    import asyncio  # noqa: PLC0415 - only who syncs

    for local in workspace.dirs.values():
        if not local.is_dir():
            raise FileNotFoundError(f"sync_workspace: {str(local)!r} is no folder")
    running = [one for one in hosts._hosts.spawned if not one._procs.stopped]  # noqa: SLF001 - of this package
    procs = hosts.spawn_procs(name="workspace")
    try:
        receivers: Any = procs.spawn("workspace", Receiver)
        each = [_one(receivers, index) for index in range(len(procs))]
        pairs = [(one, name, local) for one in each for name, local in workspace.dirs.items()]
        brought = await asyncio.gather(*(_bring(*pair) for pair in pairs))
    finally:
        await procs.stop()
    changed = sorted({file for files in brought for file in files})
    if auto_reload and changed:
        for mesh in running:
            reloader: Any = mesh.spawn("reload", Reloader)
            await reloader.reload.call(changed)
            await reloader.stop()


def manifest(top: Path) -> Manifest:
    """The files below a folder; links count as what they point to."""
    return {str(path.relative_to(top)): _stat(path) for path in _files(top)}


def _files(top: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(top):
        inner[:] = sorted(set(inner) - _SKIPPED)
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file():
                yield path


def _stat(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_mode & 0o777


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _place(name: str) -> Path:
    root = os.environ.get(ROOT)
    if not root:
        raise LookupError(
            f"sync_workspace: {ROOT} is not set on this host; start its worker with the folder "
            "that is to hold the workspace in it"
        )
    return Path(root) / name


def _one(receivers: Any, index: int) -> Any:
    extent = receivers.extent
    if not extent.sizes:
        return receivers
    coordinates = {}
    for label, size in reversed(list(extent.items())):
        index, coordinates[label] = divmod(index, size)
    return receivers.slice(**coordinates)


async def _bring(receiver: Any, name: str, local: Path) -> list[str]:
    """Bring a folder to one host; gives the files there that are new."""
    top, device, inode = await receiver.resolved.call_one(name)
    if _identity(local) == (device, inode):
        return []
    files = manifest(local)
    wanted = await receiver.missing.call_one(name, files)
    for path in wanted:
        with (local / path).open("rb") as file:
            while len(piece := file.read(_PIECE)) == _PIECE:
                await receiver.write.call_one(name, path, piece, None)
            await receiver.write.call_one(name, path, piece, files[path])
    return [os.path.join(top, path) for path in wanted]  # noqa: PTH118 - a path of the host's
