"""Joins what is heard of the end of a proc into one finding. Pure: times are passed in.

Two things tell of it and come in any order: its link closes, and whoever reaps it reports how it
ended. The finding waits for both, so that answers sent before the death are read first and the
failure can say how it ended; after a grace it does without the one that is missing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Exit(Protocol):
        """How a process ended."""

        @property
        def proc(self) -> int: ...
        @property
        def pid(self) -> int: ...
        @property
        def code(self) -> int | None: ...
        @property
        def signal(self) -> int | None: ...


__all__ = ["GRACE", "Dead", "Deaths"]

GRACE = 0.2
"""Seconds to wait for the second sign of a death."""
LONGEST = 5.0
"""Seconds to wait for it while the process is seen to be ending."""
_AGAIN = 0.05


class Dead:
    """A proc that ended: how (None where nobody could tell), and whether it was told to."""

    __slots__ = ("exit", "expected", "hung", "proc")

    def __init__(self, proc: int, exit: Exit | None, expected: bool, hung: bool) -> None:  # noqa: A002 - what it is
        self.proc = proc
        self.exit = exit
        self.expected = expected
        self.hung = hung


class _Proc:
    __slots__ = ("began", "closed", "deadline", "exit", "expected", "hung")

    def __init__(self) -> None:
        self.began = 0.0
        self.closed = False
        self.exit: Exit | None = None
        self.deadline: float | None = None
        self.expected = False
        self.hung = False


class Deaths:
    """The procs whose end this process has to explain."""

    def __init__(self, grace: float = GRACE) -> None:
        self._grace = grace
        self._procs: dict[int, _Proc] = {}

    def __contains__(self, proc: int) -> bool:
        return proc in self._procs

    def watch(self, proc: int) -> None:
        """From now on the end of `proc` is to be explained."""
        self._procs.setdefault(proc, _Proc())

    def expect(self, proc: int) -> None:
        """`proc` has been told to end: its end is no failure, however it comes about."""
        if proc in self._procs:
            self._procs[proc].expected = True

    def condemn(self, proc: int) -> None:
        """`proc` hangs and is being killed for it: what its exit report says is our doing."""
        if proc in self._procs:
            self._procs[proc].hung = True

    def link_lost(self, proc: int, now: float) -> list[Dead]:
        """The link to `proc` has closed and everything it had sent is read."""
        state = self._procs.get(proc)
        if state is None:
            return []
        state.closed = True
        return self._look(proc, state, now)

    def exited(self, report: Exit, now: float) -> list[Dead]:
        """Whoever reaps says how a proc ended."""
        state = self._procs.get(report.proc)
        if state is None:
            return []
        state.exit = report
        return self._look(report.proc, state, now)

    def has_exited(self, proc: int) -> bool:
        """Whether the end of `proc` was reported and its link is waited for."""
        return proc in self._procs and self._procs[proc].exit is not None

    def tick(self, now: float, ending: Callable[[int], bool] = lambda _: False) -> list[Dead]:
        """Findings whose grace is over; those that are `ending` get more of it."""
        found = []
        for proc, state in list(self._procs.items()):
            if state.deadline is None or state.deadline > now:
                continue
            if state.exit is None and now < state.began + LONGEST and ending(proc):
                state.deadline = now + _AGAIN
            else:
                found.append(self._found(proc))
        return found

    def deadline(self) -> float | None:
        """When `tick` is due; None while nothing waits."""
        waiting = [state.deadline for state in self._procs.values() if state.deadline is not None]
        return min(waiting, default=None)

    def _look(self, proc: int, state: _Proc, now: float) -> list[Dead]:
        if state.closed and state.exit is not None:
            return [self._found(proc)]
        if state.deadline is None:
            state.began, state.deadline = now, now + self._grace
        return []

    def _found(self, proc: int) -> Dead:
        state = self._procs.pop(proc)
        return Dead(proc, state.exit, state.expected, state.hung)
