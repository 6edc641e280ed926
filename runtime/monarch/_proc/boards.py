"""What processes are doing, on pages that they share with the process that started them.

One file in memory holds a page for each process, in which its engine keeps the endpoints that are
being handled. A page outlives its process: it tells what ran in one that was killed.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap
    from typing import Any

    from monarch._core import Engine
    from monarch._proc.spec import ProcSpec

__all__ = ["LINE", "MOST", "NO_PAGE", "PAGE", "Boards", "Running", "keep", "read_page"]

PAGE = 4096
LINE = 128
NO_PAGE = -1
MOST = 4096
"""Processes that can have a page; more do without."""
_AT_TEXT = 16


class Running:
    """An endpoint that is being handled: of which actor, and since when (monotonic seconds)."""

    __slots__ = ("actor", "endpoint", "since")

    def __init__(self, actor: int, endpoint: str, since: float) -> None:
        self.actor = actor
        self.endpoint = endpoint
        self.since = since

    def __repr__(self) -> str:
        return f"<{self.endpoint} of actor {self.actor:x} since {self.since:.3f}>"


def read_page(page: bytes) -> list[Running]:
    """What is being handled by the process whose page this is, the oldest first."""
    found = []
    for at in range(0, len(page), LINE):
        since = int.from_bytes(page[at : at + 8], "little")
        if since:
            actor = int.from_bytes(page[at + 8 : at + _AT_TEXT], "little")
            text = page[at + _AT_TEXT : at + LINE].partition(b"\0")[0]
            found.append(Running(actor, text.decode("utf-8", "replace"), since / 1e9))
    return sorted(found, key=lambda one: one.since)


def keep(engine: Engine, spec: ProcSpec, settings: dict[str, Any]) -> None:
    """In a process: let the engine write on the process's page; closes the file of all pages."""
    fd = settings.pop("boards", -1)
    if fd >= 0:
        if spec.board != NO_PAGE:
            engine.keep_board(fd, spec.board)
        os.close(fd)


class Boards:
    """The pages of the processes that this one starts. Without memory for them it holds none."""

    def __init__(self, most: int = MOST) -> None:
        self._lock = allocate_lock()
        self._most = most
        self._fd = -1
        self._memory: mmap | None = None
        self._numbers: dict[int, int] = {}
        self._free: list[int] = []
        self._count = 0

    def fileno(self) -> int:
        """The file's descriptor, for whoever starts processes; -1 where there is none."""
        if self._memory is None and hasattr(os, "memfd_create"):
            from mmap import mmap  # noqa: PLC0415 - only where processes are started

            try:
                self._fd = os.memfd_create("monarch-boards")
                os.ftruncate(self._fd, self._most * PAGE)  # memory is used as pages are
                self._memory = mmap(self._fd, self._most * PAGE)
            except OSError:
                self._drop()
        return self._fd

    def take(self, proc: int) -> int:
        """The number of a clean page for a process; NO_PAGE where there is none."""
        with self._lock:
            if self.fileno() < 0 or self._memory is None:
                return NO_PAGE
            if self._free:
                number = self._free.pop()
                self._memory[number * PAGE : (number + 1) * PAGE] = bytes(PAGE)
            elif self._count < self._most:
                number = self._count
                self._count += 1
            else:
                return NO_PAGE
            self._numbers[proc] = number
            return number

    def read(self, proc: int) -> list[Running]:
        """What a process is handling, or was when it ended; the oldest first."""
        with self._lock:
            number = self._numbers.get(proc)
            if number is None or self._memory is None:
                return []
            page = self._memory[number * PAGE : (number + 1) * PAGE]
        return read_page(page)

    def give_back(self, proc: int) -> None:
        """A process has ended, and what it did has been looked at."""
        with self._lock:
            number = self._numbers.pop(proc, None)
            if number is not None:
                self._free.append(number)

    def close(self) -> None:
        """Give everything back."""
        with self._lock:
            self._drop()

    def forget(self) -> None:
        """The same in a fork, where another thread may have held the lock."""
        self._lock = allocate_lock()
        self._drop()

    def _drop(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._numbers.clear()
        self._free.clear()
        self._count = 0
