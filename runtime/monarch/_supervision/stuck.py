"""Deadlocks of serial endpoints: which wait for each other, found between processes and named.

The engine says which actor has waited long, and what holds a call up; nothing of this needs the
threads that wait.
"""

from __future__ import annotations

from monarch._actor.cell import cells
from monarch._actor.pickling import pack
from monarch._supervision.awaited import holder, needed
from monarch._supervision.waits import Call, Circle, Wait, Waits, told
from monarch.errors import DeadlockError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from monarch._actor.process import Process
    from monarch._supervision.waits import Probe

__all__ = ["Stuck"]

_FAILED = 2


class Stuck:
    """The waits of this process's actors. Its methods run in the control thread."""

    def __init__(self, here: Process) -> None:
        self._here = here
        self._waits = Waits(here.id, self._look)

    def report(self, actor: int) -> None:
        """An actor has waited for an answer for about a second, or another second."""
        self._send(self._waits.ask(actor))

    def probed(self, _peer: int, probe: Probe) -> None:
        """A probe has come to an actor of this process."""
        self._send(self._waits.probed(probe))

    def _look(self, actor: int, proc: int, inbox: int) -> Wait | None:
        found = self._here.engine.blocked(actor, proc, inbox)
        cell = cells.get(actor)
        if found is None or cell is None:
            return None
        running, called, awaited = found
        task = holder(cell)
        if task is None:
            # A plain endpoint: its thread waits for one call at a time. With more, they are those
            # of threads that the program started, and one of the answers may be enough.
            chosen = [one for one in awaited if one[2]]
            chosen = chosen if len(chosen) == 1 else []
        else:
            tokens = needed(task)
            chosen = [one for one in awaited if not tokens.isdisjoint(one[3])]
        calls = [Call(own, missing, rank) for own, rank, _, _, missing in chosen if missing]
        if not calls:
            return None
        name = cell.cls.__qualname__
        return Wait(f"{name}.{running}", f"{name}.{called}", calls)

    def _send(self, effects: Iterable[Probe | Circle]) -> None:
        for effect in effects:
            if isinstance(effect, Circle):
                text, cycle = told(effect.hops)
                error = pack(DeadlockError(text, cycle))
                here = self._here
                here.engine.post(here.id, effect.inbox, effect.rank, _FAILED, error, None)
            else:
                self._here.tell(effect.proc, "probe", effect)
