"""What a process holds of the system, before and after: descriptors, threads, processes, memory."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Snapshot", "descendants", "leaks"]

_SHARED = Path("/dev/shm")  # noqa: S108 - where shared memory has its names
_PREFIX = "monarch"
_POOL = "monarch-worker"


class Snapshot:
    """What this process and those it started hold at one moment.

    Attributes:
        descriptors: open descriptors, each with what it is open on.
        threads: threads of this process, by id, but for the pool that actors in it share.
        processes: descendants of this process, zombies included, by pid.
        shared: names of shared memory of ours.
        files: temporary files of ours.

    """

    __slots__ = ("descriptors", "files", "processes", "shared", "threads")

    def __init__(self) -> None:
        self.descriptors = dict(_descriptors())
        self.threads = dict(_threads())
        self.processes = dict(descendants(os.getpid()))
        self.shared = {name: str(_SHARED / name) for name in _ours(_SHARED)}
        folder = Path(tempfile.gettempdir())
        self.files = {name: str(folder / name) for name in _ours(folder)}

    def new_since(self, before: Snapshot) -> list[str]:
        """One line for each thing that is here now and was not there before."""
        found = []
        for kind in self.__slots__:
            then, now = getattr(before, kind), getattr(self, kind)
            found += [
                f"{_WORDS[kind]} {key}: {what}" for key, what in sorted(now.items() - then.items())
            ]
        return found


_WORDS = {
    "descriptors": "descriptor",
    "threads": "thread",
    "processes": "process",
    "shared": "shared memory",
    "files": "temporary file",
}


def leaks(
    before: Snapshot, wait: float, sleep: Callable[[float], object] = time.sleep
) -> list[str]:
    """What is new since `before` and still there after at most `wait` seconds.

    What was told to end may take a moment to be gone; what is gone on the first look costs none.
    """
    end = time.monotonic() + wait
    pause = 0.002
    while True:
        _let_go()
        found = Snapshot().new_since(before)
        if not found or time.monotonic() >= end:
            return found
        sleep(pause)
        pause = min(pause * 2, 0.1)


def _let_go() -> None:
    # Shared memory that waits for the next large message is no leak.
    module = sys.modules.get("monarch._actor.process")
    running = module.running_process() if module is not None else None
    if running is not None:
        running.engine.trim()


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Processes below a process, each with its command line (in brackets when it is a zombie)."""
    parents: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for number in _names(Path("/proc")):
        if not number.isdecimal():
            continue
        entry = Path("/proc", number)
        try:
            stat = (entry / "stat").read_bytes()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        name, _, rest = stat.partition(b"(")[2].rpartition(b")")
        child, state, parent = int(number), rest.split()[0], int(rest.split()[1])
        parents.setdefault(parent, []).append(child)
        line = command.replace(b"\0", b" ").decode("utf-8", "replace").strip()
        label = name.decode("utf-8", "replace")
        names[child] = f"[{label}, ended and not reaped]" if state == b"Z" else line or f"[{label}]"
    below = list(parents.get(pid, ()))
    while below:
        child = below.pop()
        below += parents.get(child, ())
        yield child, names[child]


def _descriptors() -> Iterator[tuple[int, str]]:
    # The descriptor of the listing itself is closed by the time its target is read.
    for name in _names(Path("/proc/self/fd")):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115 - a name, not a path
        except OSError:
            continue
        yield int(name), target


def _threads() -> Iterator[tuple[int, str]]:
    known = {thread.native_id: thread.name for thread in threading.enumerate()}
    for name in _names(Path("/proc/self/task")):
        try:
            text = Path("/proc/self/task", name, "comm").read_text(encoding="utf-8")
            label = known.get(int(name), text.strip())
            if not label.startswith(_POOL):
                yield int(name), label
        except OSError:
            continue


def _ours(folder: Path) -> Iterator[str]:
    yield from (name for name in _names(folder) if name.startswith(_PREFIX))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names, not paths
    except OSError:
        return []
