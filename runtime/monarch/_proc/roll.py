"""The processes that were asked for, and what is known of each until its end is reported."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from monarch._proc.spec import ProcSpec

__all__ = ["Roll"]


class Roll:
    """Who was asked for, has started, was told to end. Changes are guarded by its owner's lock."""

    def __init__(self) -> None:
        self._specs: dict[int, ProcSpec] = {}
        self._together: list[list[int]] = []  # what was asked for at once
        self._pids: dict[int, int] = {}
        self._limits: dict[int, float] = {}
        self._expected: dict[int, float] = {}  # since when; the zygote may hear it late

    def __contains__(self, proc: object) -> bool:
        return proc in self._specs

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._specs))

    def ask(self, specs: Sequence[ProcSpec]) -> None:
        """These are asked for, at once."""
        self._together = [*self.together(), [spec.id for spec in specs]]
        self._specs.update((spec.id, spec) for spec in specs)

    def started(self, proc: int, pid: int) -> None:
        """A process has started."""
        self._pids[proc] = pid

    def pid(self, proc: int) -> int | None:
        """The pid of one that has started."""
        return self._pids.get(proc)

    def waits(self, proc: int) -> bool:
        """Whether a process was asked for and has not started."""
        return proc in self._specs and proc not in self._pids

    def label(self, proc: int) -> str | None:
        """How people know a process."""
        spec = self._specs.get(proc)
        return None if spec is None else spec.label

    def together(self) -> list[list[int]]:
        """Those that were asked for at once together, in the order of asking."""
        left = [[proc for proc in procs if proc in self._specs] for procs in self._together]
        self._together = [procs for procs in left if procs]
        return list(self._together)

    def stop(self, procs: Iterable[int], timeout: float) -> list[int]:
        """Expect these to end within `timeout` seconds; those of them that are here."""
        found = self.expect(procs)
        self._limits.update(dict.fromkeys(found, timeout))
        return found

    def limit(self, proc: int) -> float:
        """The seconds within which a process was to end."""
        return self._limits.get(proc, 0)

    def expect(self, procs: Iterable[int]) -> list[int]:
        """Expect these to end, from now on; those of them that are here."""
        now = time.monotonic()
        found = [proc for proc in procs if proc in self._specs]
        for proc in found:
            self._expected.setdefault(proc, now)
        return found

    def surprise(self, procs: Iterable[int]) -> list[int]:
        """Nobody expects these to end any more; those of them that are here."""
        found = [proc for proc in procs if proc in self._specs]
        for proc in found:
            self._expected.pop(proc, None)
        return found

    def told(self, proc: int) -> bool:
        """Whether a process is expected to end."""
        return proc in self._expected

    def was_told(self, proc: int, moment: float) -> bool:
        """Whether the end of a process at this moment, of the monotonic clock, was expected."""
        since = self._expected.get(proc)
        return since is not None and moment >= since

    def ended(self, proc: int) -> None:
        """The end of a process has been reported."""
        for known in (self._specs, self._pids, self._limits, self._expected):
            known.pop(proc, None)

    def clear(self) -> None:
        """There are none any more, and nobody hears of their ends."""
        self.expect(self._specs)
        self._specs.clear()
        self._pids.clear()
