"""The per-user cache: entries appear whole or not at all, and two builders do not race."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where fetched toolchains are kept: XDG_CACHE_HOME, else ~/.cache."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "monarch-build"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path` (made when missing); the kernel drops it when we die."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def entry(folder: Path, fill: Callable[[Path], None]) -> Path:
    """The cache entry `folder`, filled by `fill` in a private place and moved in when complete.

    A folder of this name is complete by construction: a builder that dies leaves only a
    `.new-…` folder beside it, which the next one removes.
    """
    with locked(folder.with_name(f".lock-{folder.name}")):
        if folder.is_dir():
            return folder
        for stale in folder.parent.glob(f".new-{folder.name}-*"):
            shutil.rmtree(stale, ignore_errors=True)
        place = Path(tempfile.mkdtemp(prefix=f".new-{folder.name}-", dir=folder.parent))
        place.chmod(0o755)
        try:
            fill(place)
            place.rename(folder)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
    return folder
