"""Processes that are lost: what became of them, for those who wait for them and for their owners.

The process that started another hears of its end itself: the link closes, and the end is reported.
It tells the other processes that have handles of the mesh; one that loses a link asks it, and does
without an answer after a while. Owners are told in their own process: of each actor mesh that had
an actor in the lost process, or else of the mesh of processes.
"""

from __future__ import annotations

import time
from _thread import allocate_lock

from monarch import config
from monarch._actor.cell import cells
from monarch._actor.lifecycle import STOP
from monarch._actor.pickling import pack
from monarch._actor.process import origin
from monarch._mesh.placements import holding, place_of, started_by, starter_of
from monarch._proc import hosts, local
from monarch._proc.state import has_ended, is_ending, is_stopped
from monarch._supervision.climb import ROOT
from monarch._supervision.deaths import Deaths
from monarch._supervision.describe import by_owner, lost_proc, unknown
from monarch._supervision.hook import is_default
from monarch.errors import SupervisionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from monarch._actor.process import Process
    from monarch._failure import MeshFailure
    from monarch._mesh.placement import Placement
    from monarch._proc.boards import Running
    from monarch._supervision.deaths import Dead
    from monarch._supervision.owners import Owners
    from monarch._supervision.timer import Timer

__all__ = ["Lost"]

_ASK_S = 1.0
_LOOK_S = 0.5
_REMEMBERED = 4096


class Lost:
    """The ends of processes, as this one hears of them. Its methods run in the control thread."""

    def __init__(self, here: Process, owners: Owners, timer: Timer) -> None:
        self._here = here
        self._owners = owners
        self._timer = timer
        self._lock = allocate_lock()
        self._deaths = Deaths()
        self._ran: dict[int, list[Running]] = {}
        self._fates: dict[int, Any] = {}
        self._curious: dict[int, set[int]] = {}
        self._unowned: dict[int, tuple[set[int], tuple[int, int], MeshFailure]] = {}
        self._stalled: set[int] = set()
        self._restarted: dict[int, None] = {}

    def link_lost(self, peer: int) -> None:
        """The link to a process has closed."""
        self._stalled.discard(peer)
        self._end_orphans(peer)
        if place_of(peer) is None:
            self._ask(peer)
            return
        with self._lock:
            if peer in self._fates:
                return
            self._deaths.watch(peer)
            found = self._deaths.link_lost(peer, time.monotonic())
        self._settle(found)

    def unanswered(self, peer: int) -> None:
        """A process is dialled in vain: who started it knows whether it is there."""
        with self._lock:
            fate = self._fates.get(peer)
        if fate is not None:  # it was told before anything was sent there
            self._here.fail_peer(peer, pack(fate))
            return
        starter = starter_of(peer)
        if self._outlived(peer, starter):
            return
        if place_of(peer) is None and starter not in {None, peer, self._here.id}:
            self._here.tell(starter, "fate?", peer)

    def _outlived(self, peer: int, starter: int | None) -> bool:
        """Whether this is a fork that has outlived the program of a process, as is told then."""
        program, pid = origin()
        if program not in {peer, starter} or not pid or not has_ended(pid):
            return False
        for proc in (program, *started_by(program)):
            self._close(proc, unknown(proc, holding(proc), outlived=True))
        return True

    def broken(self, peer: int) -> None:
        """The connection to a process of another host has ended: with it, if its end was told."""
        with self._lock:
            over = self._deaths.has_exited(peer)
        if over:
            self._here.give_up(peer, "it has ended")

    def exited(self, report: Any) -> None:
        """The end of a process that this one started is reported."""
        with self._lock:
            if report.proc in self._fates:
                return
            if self._here.engine.is_broken(report.proc):
                self._here.give_up(report.proc, "it has ended")
            self._ran[report.proc] = local.running(report.proc)
            self._deaths.watch(report.proc)
            found = self._deaths.exited(report, time.monotonic())
        self._settle(found)

    # A process that does not answer: busy is not dead.

    def stalled(self, peer: int, seconds: float | None) -> None:
        """A process misses its beats, or (None) is back.

        Its beats come from a thread that needs neither interpreter nor lock, so a busy one is not
        among these. One that somebody has stopped is killed, for what it would do later counts as
        done by its successor; one that the system does not let run is left alone.
        """
        if seconds is None:
            self._stalled.discard(peer)
        elif peer not in self._stalled and (place_of(peer) or self._here.is_far(peer)):
            self._stalled.add(peer)
            self._look(peer)

    def hung(self, _agent: int, proc: int) -> None:
        """A host agent is about to kill a process that somebody has stopped."""
        with self._lock:
            self._deaths.watch(proc)
            self._deaths.condemn(proc)

    def _look(self, peer: int) -> None:
        if peer not in self._stalled:
            return
        if self._here.is_far(peer):
            # If it is stopped, its host's agent is about to say so; if not, it is cut off.
            beat = config.value("heartbeat_interval") * config.value("heartbeat_misses")
            self._timer.after(beat, lambda: self._give_up(peer))
            return
        pid = local.pid(peer)
        if pid is None:
            if local.held_up(peer):
                self._here.give_up(peer, "it cannot start")
            elif local.lives(peer):
                self._timer.after(_LOOK_S, lambda: self._look(peer))
        elif is_stopped(pid):
            with self._lock:
                self._deaths.watch(peer)
                self._deaths.condemn(peer)
            local.kill([peer], expected=False)
        else:
            self._timer.after(_LOOK_S, lambda: self._look(peer))

    def _give_up(self, peer: int) -> None:
        if peer in self._stalled:
            self._here.give_up(peer, "it does not answer")

    # Processes that others started.

    def asked(self, asker: int, proc: int) -> None:
        """Another process wants to know what became of one that this one started."""
        with self._lock:
            fate = self._fates.get(proc)
            if fate is None and place_of(proc) is not None:
                self._curious.setdefault(proc, set()).add(asker)
                return
        self._here.tell(asker, "fate", (proc, fate, False, proc in self._restarted))

    def told(self, peer: int, body: tuple[int, Any, bool, bool]) -> None:
        """The starter of a lost process says what became of it; one that restarts has no owners."""
        proc, fate, wants, restarts = body
        known = fate is not None
        place = holding(proc)
        owners = []
        if known and place is not None and not isinstance(fate, BaseException):
            place[0].lost.add(place[1])
            owners = [] if restarts else by_owner(place[0], place[1], fate, self._here.id)
        if wants and not owners:
            self._here.tell(peer, "unowned", proc)
        self._close(proc, fate if known else unknown(proc, place))
        for owner, failure in owners:
            self._owners.tell(owner, failure)

    def nobody(self, peer: int, proc: int) -> None:
        """A process that has handles of a lost one's mesh had no actors in it."""
        with self._lock:
            found = self._unowned.get(proc)
            if found is None:
                return
            found[0].discard(peer)
            if found[0]:
                return
            del self._unowned[proc]
        self._owners.tell(found[1], found[2])

    def _end_orphans(self, peer: int) -> None:
        """Actors here that a lost process owned end, since no mesh outlives its owner."""
        here = self._here
        ids = [actor for actor, cell in list(cells.items()) if cell.owner[0] == peer]
        if ids and peer != here.id:
            order = pack(("stop", "the process of its owner is gone"))
            targets = here.engine.targets([here.id] * len(ids), ids)
            here.engine.cast(targets, "", order, None, 0, b"", STOP)

    def _ask(self, peer: int) -> None:
        with self._lock:
            if peer in self._fates:
                return
        starter = starter_of(peer)
        if self._outlived(peer, starter):
            return
        if starter is None or starter in {peer, self._here.id}:
            self._close(peer, unknown(peer, holding(peer)))
            return
        self._here.tell(starter, "fate?", peer)
        self._timer.after(_ASK_S, lambda: self._close(peer, unknown(peer, holding(peer))))

    # What was found out.

    def _settle(self, found: Iterable[Dead]) -> None:
        for dead in found:
            self._explain(dead)
        with self._lock:
            deadline = self._deaths.deadline()
        if deadline is not None:
            self._timer.after(max(deadline - time.monotonic(), 0.0), self._tick)

    def _tick(self) -> None:
        with self._lock:
            found = self._deaths.tick(time.monotonic(), _is_ending)
        self._settle(found)

    def _explain(self, dead: Dead) -> None:
        ran = self._ran.pop(dead.proc, None)
        place = place_of(dead.proc)
        if place is None:
            self._close(dead.proc, unknown(dead.proc, None))
            return
        placement, rank = place
        told = local.told(dead.proc) if dead.exit is None else getattr(dead.exit, "expected", False)
        if dead.expected or told or placement.stopped:
            text = placement.stopped or "it was told to end"
            error = f"rank {rank} of mesh {placement.name!r} was stopped: {text}"
            self._close(dead.proc, SupervisionError(error, None, (rank,)))
            return
        if placement.refs[rank].id == dead.proc:
            placement.lost.add(rank)
        failure = lost_proc(dead, placement, rank, local.running(dead.proc) if ran is None else ran)
        if dead.exit is None:
            local.kill([dead.proc])  # it may live on without its link: it is replaced, or missed
        # One that was replaced, or given up, before it was heard of: no owner has lost it.
        left = dead.proc in placement.leaving or placement.refs[rank].id != dead.proc
        if left or self._owners.restarts.covers(placement, rank):
            with self._lock:
                self._restarted[dead.proc] = None
                while len(self._restarted) > _REMEMBERED:
                    del self._restarted[next(iter(self._restarted))]
            self._close(dead.proc, failure, set(placement.holders))
            if left or self._owners.restarts.proc_lost(placement, rank, dead.proc, failure):
                return
        self._tell_all(dead.proc, placement, rank, failure)

    def _tell_all(self, proc: int, placement: Placement, rank: int, failure: MeshFailure) -> None:
        here = self._here
        owners = by_owner(placement, rank, failure, here.id)
        holders = set(placement.holders)
        if not owners and holders:
            with self._lock:
                self._unowned[proc] = (holders, placement.owner, failure)
        elif not owners:
            owners = [(placement.owner, failure)]
        # A hook that ends the program comes first: nothing else is to be said before its report.
        ends = here.parent is None and is_default() and not failure.replaceable
        first = ends and any(owner == (here.id, ROOT) for owner, _ in owners)
        if first:
            self._timer.after(_ASK_S, lambda: self._close(proc, failure))
        else:
            self._close(proc, failure, holders, wants=not owners)
        for owner, theirs in owners:
            self._owners.tell(owner, theirs)

    def _close(
        self, proc: int, fate: Any, holders: Iterable[int] = (), *, wants: bool = False
    ) -> None:
        """Who waits for a lost process, here and elsewhere, gets to know its fate. Once."""
        with self._lock:
            if proc in self._fates:
                return
            self._fates[proc] = fate
            while len(self._fates) > _REMEMBERED:
                del self._fates[next(iter(self._fates))]
            curious = self._curious.pop(proc, set())
        self._here.fail_peer(proc, pack(fate))
        for other in {*curious, *holders}:
            restarts = proc in self._restarted
            self._here.tell(other, "fate", (proc, fate, wants and other in holders, restarts))


def _is_ending(proc: int) -> bool:
    """Whether a process of this host is on its way out."""
    pid = None if hosts.host_of(proc) is not None else local.pid(proc)
    return pid is not None and is_ending(pid)
