"""Calls at a later time, in one thread that exists while something is due."""

from __future__ import annotations

from _thread import allocate_lock
from heapq import heappop, heappush
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Timer"]

_IDLE_S = 2.0


class Timer:
    """Runs functions when they are due; they are quick, and what they raise is reported.

    `start(run, name)` starts a thread. It ends when nothing was due for a while.
    """

    def __init__(self, start: Callable[[Callable[[], object], str], object]) -> None:
        self._start = start
        self._lock = allocate_lock()
        self._heap: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0
        self._running = False
        self._wake = allocate_lock()
        self._wake.acquire()
        self.closed = False

    def after(self, seconds: float, function: Callable[[], object]) -> None:
        """Call `function()` in `seconds`."""
        with self._lock:
            if self.closed:
                return
            self._count += 1
            heappush(self._heap, (monotonic() + seconds, self._count, function))
            first = self._heap[0][1] == self._count
            run = not self._running
            self._running = True
        if run:
            self._start(self._run, "monarch-timer")
        elif first:
            self._signal()

    def close(self) -> None:
        """Nothing is called from now on."""
        with self._lock:
            self.closed = True
            self._heap.clear()
        self._signal()

    def _signal(self) -> None:
        try:
            self._wake.release()
        except RuntimeError:
            return  # it was signalled before and has not woken yet

    def _run(self) -> None:
        while True:
            with self._lock:
                if self.closed:
                    self._running = False
                    return
                now = monotonic()
                wait = self._heap[0][0] - now if self._heap else _IDLE_S
                function = heappop(self._heap)[2] if self._heap and wait <= 0 else None
            if function is not None:
                try:
                    function()
                except Exception:  # noqa: BLE001 - the others are due all the same
                    _report()
                continue
            woken = self._wake.acquire(timeout=max(wait, 0.0))
            with self._lock:
                if not woken and not self._heap:
                    self._running = False
                    return


def _report() -> None:
    import traceback  # noqa: PLC0415 - only on the way out

    traceback.print_exc()
