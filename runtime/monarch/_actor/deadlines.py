"""Deadlines of calls: what is late is cancelled on the far side, waited for or not."""

# ruff: noqa: SLF001 - endpoints, handles and futures know each other
from __future__ import annotations

import weakref
from _thread import allocate_lock
from heapq import heapify, heappop, heappush
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Condition
    from typing import Any

    from monarch._actor.future import Future

__all__ = ["renew", "watch"]

_FEW = 1000


class _Clock:
    """One thread that expires futures when their time has come; it ends when there are none."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, weakref.ref[Future[Any]], Any]] = []
        self._count = 0
        self._prune_at = _FEW
        self._condition: Condition | None = None
        self._runs = False
        self._lock = allocate_lock()

    def add(self, deadline: float, future: Any) -> None:
        import threading  # noqa: PLC0415 - few calls have a deadline

        from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

        with self._lock:
            if self._condition is None:
                self._condition = threading.Condition()
                process().at_exit(self._stop)
        with self._condition:
            self._count += 1
            entry = (deadline, self._count, weakref.ref(future), future._inbox)
            heappush(self._heap, entry)
            if len(self._heap) > self._prune_at:
                self._heap = [kept for kept in self._heap if kept[3].arrived < kept[3].expected]
                heapify(self._heap)
                self._prune_at = 2 * len(self._heap) + _FEW
            if not self._runs:
                self._runs = True
                process().start_thread(self._run, "monarch-deadlines")
            elif self._heap and self._heap[0] is entry:
                self._condition.notify()

    def _run(self) -> None:
        condition = self._condition
        while condition is not None:
            with condition:
                while self._heap and self._heap[0][0] > monotonic():
                    condition.wait(self._heap[0][0] - monotonic())
                if not self._heap:
                    self._runs = False
                    return
                _deadline, _count, reference, inbox = heappop(self._heap)
            future = reference()
            if future is None:
                inbox.cancel()
            elif not future.done():
                future._expire()

    def _stop(self) -> None:
        condition = self._condition
        if condition is not None:
            with condition:
                self._heap.clear()
                condition.notify()


_clock = _Clock()


def renew() -> None:
    """Begin anew, in a forked child, where the thread of the parent does not run."""
    global _clock  # noqa: PLW0603 - the one there is
    _clock = _Clock()


def watch(deadline: float, future: Future[Any]) -> None:
    """Expire the future at this time of the monotonic clock, if it is not settled by then."""
    _clock.add(deadline, future)
