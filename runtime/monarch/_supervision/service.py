"""Supervision in one process: what it hears of deaths, and what it does about them."""

from __future__ import annotations

from monarch._actor.hooks import hooks
from monarch._actor.process import at_start
from monarch._proc import local
from monarch._supervision.hook import end_program, unhandled_fault_hook
from monarch._supervision.lost import Lost
from monarch._supervision.owners import Owners
from monarch._supervision.stuck import Stuck
from monarch._supervision.timer import Timer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from monarch._actor.process import Process
    from monarch._supervision.interrupt import Interrupts

__all__ = ["Service", "install", "unhandled_fault_hook"]


class Service:
    """The parts of a process's supervision, bound to it."""

    def __init__(self, here: Process) -> None:
        self.here = here
        self.timer = Timer(here.start_thread)
        root = None if here.parent is None else (here.parent, 0)
        self.owners = Owners(here, root, self.end)
        self.lost = Lost(here, self.owners, self.timer)
        self.stuck = Stuck(here)
        self.interrupts: Interrupts | None = None
        here.at_exit(self._close)
        here.on("failure", self._heard)
        here.on("fate?", self.lost.asked)
        here.on("fate", self.lost.told)
        here.on("unowned", self.lost.nobody)
        here.on("probe", self.stuck.probed)
        here.on_link_lost(self.lost.link_lost)
        here.on_stalled(self.lost.stalled)
        here.on_stuck(self.stuck.report)
        local.listen(on_exit=self.lost.exited)
        hooks.failed = self.owners.failed
        hooks.supervise = self.owners.supervise
        hooks.ended = self.owners.ended
        if here.parent is None:
            from monarch._supervision.interrupt import install as take_interrupts  # noqa: PLC0415

            self.interrupts = take_interrupts(self._kill)

    def end(self, status: int, report: str) -> None:
        """End the program: first its processes, then itself, with the report as the last word."""
        end_program(status, report, [local.end_now])

    def _kill(self) -> None:
        self.end(130, "")

    def _heard(self, _peer: int, body: tuple[int, int, Any]) -> None:
        actor, _mesh, failure = body
        self.owners.arrived(actor, failure)

    def _close(self) -> None:
        self.timer.close()
        if self.interrupts is not None:
            self.interrupts.ending = True


def install() -> None:
    """Supervise each process of the runtime that this interpreter is, or becomes by a fork."""
    at_start(Service)


install()
