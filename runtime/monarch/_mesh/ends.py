"""Waiting for processes that this one started: that they have begun, and that they have ended."""

from __future__ import annotations

from _thread import allocate_lock

from monarch import config
from monarch._actor.future import Combined, Pending
from monarch._actor.process import process
from monarch._actor.replies import OK
from monarch._mesh import placements
from monarch._proc import local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from monarch._actor.future import Future
    from monarch._core import Inbox
    from monarch._mesh.placement import Placement

    R = TypeVar("R")

__all__ = ["stop_procs", "when_ended"]


def stop_procs(procs: Placement, reason: str, title: str) -> Future[None]:
    """End the processes of a mesh that this process spawned; the mesh is stopped from here on."""
    limit: float = config.value("mesh_terminate_timeout")
    procs.stop(reason)
    ids = [ref.id for ref in procs.refs.values()]
    spares = [] if procs.request is None else procs.request.spares
    others = [one.stop(reason) for one in spares]

    def done(_inbox: Inbox) -> None:
        placements.disown(procs)

    ended = when_ended(ids, done, f"{title} to stop")
    local.stop(ids, reason, limit)
    return Combined([ended, *others], lambda _all: None) if others else ended


class _Waiters:
    """Inboxes that want to hear of the ends of processes, by process."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._waiting: dict[int, list[tuple[int, int]]] = {}
        self._listens = False

    def add(self, procs: Iterable[int], inbox: int) -> None:
        """Post to an inbox as each of these ends, or has ended; the index is the rank."""
        with self._lock:
            if not self._listens:
                self._listens = True
                local.listen(on_exit=self._ended)
            gone = []
            for rank, proc in enumerate(procs):
                if local.lives(proc):
                    self._waiting.setdefault(proc, []).append((inbox, rank))
                else:
                    gone.append((inbox, rank))
        _post(gone)

    def _ended(self, report: Any) -> None:
        with self._lock:
            waiting = self._waiting.pop(report.proc, [])
        _post(waiting)


def _post(waiting: Iterable[tuple[int, int]]) -> None:
    here = process()
    for inbox, rank in waiting:
        here.engine.post(here.id, inbox, rank, OK, b"", None)


_waiters = _Waiters()


def when_ended(procs: list[int], settle: Callable[[Inbox], R], what: str) -> Future[R]:
    """A future of `settle` once all of these processes have ended."""
    inbox = process().engine.open_inbox(False)
    _waiters.add(procs, inbox.id)
    return Pending(inbox, len(procs), settle, what)
