"""Supervision in one process: what it hears of deaths, and what it does about them.

Importing this takes part in the start of every program, so the rest is imported when a process's
part in the runtime is made, or when there is something to do.
"""

# ruff: noqa: PLC0415 - see above
from __future__ import annotations

from monarch._actor.hooks import hooks
from monarch._actor.process import at_start
from monarch._supervision.hook import unhandled_fault_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from monarch._actor.process import Process
    from monarch._supervision.interrupt import Interrupts
    from monarch._supervision.stuck import Stuck

__all__ = ["Service", "settle", "unhandled_fault_hook"]


class Service:
    """The parts of a process's supervision, bound to it."""

    def __init__(self, here: Process) -> None:
        from monarch._proc import local
        from monarch._supervision.lost import Lost
        from monarch._supervision.owners import Owners
        from monarch._supervision.timer import Timer

        self.here = here
        self.timer = Timer(here.start_thread)
        root = None if here.parent is None else (here.parent, 0)
        self.owners = Owners(here, root, self.end)
        self.lost = Lost(here, self.owners, self.timer)
        self._stuck: Stuck | None = None
        here.at_exit(self._close)
        here.on("failure", self._heard)
        here.on("fate?", self.lost.asked)
        here.on_unanswered(self.lost.unanswered)
        here.on("fate", self.lost.told)
        here.on("proc_hung", self.lost.hung)
        here.on("unowned", self.lost.nobody)
        here.on("probe", self._probed)
        here.on_link_lost(self.lost.link_lost)
        here.on_broken(self.lost.broken)
        here.on_stalled(self.lost.stalled)
        here.on_stuck(self._waits)
        local.listen(on_exit=self.lost.exited)
        hooks.failed = self.owners.failed
        hooks.supervise = self.owners.supervise
        hooks.ended = self.owners.ended
        self.interrupts: Interrupts | None = None
        if here.parent is None:
            from monarch._supervision import interrupt

            self.interrupts = interrupt.install(lambda: self.end(interrupt.STATUS, ""), local.hurry)

    @property
    def stuck(self) -> Stuck:
        """What finds deadlocks; made when something looks like one."""
        if self._stuck is None:
            from monarch._supervision.stuck import Stuck

            self._stuck = Stuck(self.here)
        return self._stuck

    def end(self, status: int, report: str) -> None:
        """End the program: first its processes, then itself, with the report as the last word."""
        from monarch._proc import local
        from monarch._supervision.hook import end_program

        end_program(status, report, [local.end_now])

    def _heard(self, _peer: int, body: tuple[int, int, Any]) -> None:
        actor, _mesh, failure = body
        self.owners.arrived(actor, failure)

    def _waits(self, actor: int) -> None:
        self.stuck.report(actor)

    def _probed(self, peer: int, probe: Any) -> None:
        self.stuck.probed(peer, probe)

    def _close(self) -> None:
        self.timer.close()
        if self.interrupts is not None:
            self.interrupts.ending = True


def settle() -> None:
    """Return once the hook has been called with all that has arrived."""
    if _service is not None:
        _service.owners.settle()


_service: Service | None = None


def _begin(here: Process) -> None:
    global _service  # noqa: PLW0603 - one of a process
    _service = Service(here)


at_start(_begin)
