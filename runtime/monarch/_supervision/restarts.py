"""Restarts without being asked: policies given at a spawn, and owners that decide for one.

A mesh with a policy has a queue of the deaths in it, and while there are some a thread that answers
them: it stops what is to stop, the last rank first, and starts again what is to start. What the
policy gives up goes to the owner as any failure, and the mesh ends.
"""

from __future__ import annotations

from _thread import allocate_lock
from time import monotonic

from monarch._mesh import placements
from monarch._proc import hosts
from monarch._restart import Restart
from monarch._supervision.members import Actors, Procs
from monarch._supervision.policy import GiveUp, Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from monarch._actor.process import Process
    from monarch._failure import MeshFailure
    from monarch._mesh.placement import Placement
    from monarch._supervision.policy import Plan

    Escalate = Callable[[int, MeshFailure], object]

__all__ = ["Restarts"]


class _Death:
    """One rank's, as it stands in the queue."""

    __slots__ = ("failure", "proc", "rank", "well")

    def __init__(self, rank: int, proc: int, failure: MeshFailure, *, well: bool) -> None:
        self.rank = rank
        self.proc = proc
        self.failure = failure
        self.well = well


class _Queue:
    """The deaths of one mesh that are to be answered."""

    __slots__ = ("busy", "deaths", "group", "members", "over")

    def __init__(self, members: Procs | Actors, restart: Restart) -> None:
        self.members = members
        self.group = Group(restart, members.ranks())
        self.deaths: list[_Death] = []
        self.busy = False
        self.over = False


class Restarts:
    """The meshes of this process that start again by themselves.

    `escalate(owner, failure)` brings before an owner, an actor of this process, what was given up.
    """

    def __init__(self, here: Process, escalate: Escalate) -> None:
        self._here = here
        self._escalate = escalate
        self._lock = allocate_lock()
        self._queues: dict[tuple[int, int], _Queue] = {}
        self._ending: threading.Event | None = None
        here.at_exit(self._close)

    @staticmethod
    def covers(placement: Placement, rank: int) -> bool:
        """Whether a mesh of processes that this one started has a policy for a rank that is lost.

        A host that is gone leaves nothing to start the rank on, unless there is another host; but
        of a temporary one nothing is to be started.
        """
        request = placement.request
        if request is None or request.restart is None:
            return False
        if request.restart.kind == "temporary":
            return True
        return request.another is not None or not hosts.is_lost(request.host(rank).proc)

    def proc_lost(self, placement: Placement, rank: int, proc: int, failure: MeshFailure) -> bool:
        """Let the policy of a mesh take care of a lost process; False where it has given up."""
        restart = placement.request.restart
        well = failure.kind == "exit" and failure.exit_code == 0
        death = _Death(rank, proc, failure, well=well)
        return self._put((placement.id, 0), Procs(placement), restart, [death])

    def actor_failed(self, owner: int, failure: MeshFailure) -> bool:
        """Whether the policy of a mesh of actors takes care of some that failed.

        `owner` is the actor of this process that is to be told of it.
        """
        found = self._spawned(failure)
        if found is None or failure.proc_lost:
            return False
        members, proc = found
        restart = members.spawned.restart
        if restart is None or members.spawned.sender != owner or failure.passed_by:
            return False
        return self._put_actors(members, proc, restart, failure)

    def decided(self, failure: MeshFailure) -> bool:
        """The owner of what failed wants it started again; False where nothing here can be."""
        if failure.proc_lost:
            proc = int(failure.death.partition("-")[0], 16)
            place = placements.place_of(proc)
            if place is None or place[0].request is None:
                return False
            placement, rank = place
            restart = placement.request.restart or Restart()
            death = _Death(rank, proc, failure, well=False)
            return self._put((placement.id, 0), Procs(placement), restart, [death])
        found = self._spawned(failure)
        if found is None:
            return False
        members, proc = found
        restart = members.spawned.restart or Restart()
        return self._put_actors(members, proc, restart, failure)

    @staticmethod
    def _spawned(failure: MeshFailure) -> tuple[Actors, int] | None:
        """Actors that failed, where this process spawned them, and their process."""
        proc, _, rest = failure.death.partition("-")
        if not rest:
            return None
        place = placements.holding(int(proc, 16))
        spawned = None if place is None else place[0].spawned.get(int(rest.partition("-")[0], 16))
        if place is None or spawned is None:
            return None
        return Actors(place[0], spawned), int(proc, 16)

    def _put_actors(
        self,
        members: Actors,
        proc: int,
        restart: Restart,
        failure: MeshFailure,
    ) -> bool:
        deaths = [
            _Death(
                rank,
                proc if len(failure.ranks) == 1 else members.placement.refs[rank].id,
                failure.replace(ranks=(rank,)),
                well=False,
            )
            for rank in failure.ranks
        ]
        key = (members.placement.id, members.spawned.actor)
        return self._put(key, members, restart, deaths)

    def _put(
        self,
        key: tuple[int, int],
        members: Procs | Actors,
        restart: Restart,
        deaths: list[_Death],
    ) -> bool:
        with self._lock:
            queue = self._queues.get(key)
            if queue is None:
                for old in [k for k, q in self._queues.items() if q.members.ended()]:
                    del self._queues[old]
                queue = self._queues[key] = _Queue(members, restart)
            if queue.over:
                return False
            queue.deaths += deaths
            start = not queue.busy
            queue.busy = True
            if self._ending is None:
                import threading  # noqa: PLC0415 - a program without deaths does without

                self._ending = threading.Event()
        if start:
            self._here.start_thread(lambda: self._answer(queue), "monarch-restart")
        return True

    def _answer(self, queue: _Queue) -> None:
        while True:
            with self._lock:
                deaths, queue.deaths = queue.deaths, []
                if not deaths or queue.over:
                    queue.busy = False
                    return
            members = queue.members
            deaths = members.apart([one for one in deaths if members.has(one.rank, one.proc)])
            found = queue.group.ended([(one.rank, one.well) for one in deaths], monotonic())
            try:
                if isinstance(found, GiveUp):
                    self._give_up(queue, deaths, found)
                elif found is not None:
                    self._restart(queue, found)
            except Exception as error:  # noqa: BLE001 - what cannot start again is given up
                self._end(queue, deaths[-1], f"{members.title} ends: {error}")

    def _restart(self, queue: _Queue, plan: Plan) -> None:
        members, shutdown = queue.members, queue.group.restart.shutdown
        for rank in plan.stop:
            members.stop(rank, shutdown)
        if plan.delay and self._ending is not None:
            self._ending.wait(plan.delay)
        if not self._here.stopped and not members.ended():
            members.start(plan.start, shutdown)

    def _give_up(self, queue: _Queue, deaths: list[_Death], found: GiveUp) -> None:
        members, restart = queue.members, queue.group.restart
        last = next(one for one in deaths if one.rank == found.child)
        often = f"{found.restarts} restarts within {restart.within:g} s"
        why = f"{members.title} ends: it has had {often}, and {restart.max} are allowed"
        self._end(queue, last, why)

    def _end(self, queue: _Queue, last: _Death, why: str) -> None:
        members = queue.members
        with self._lock:
            queue.over = True
        members.end(why)
        said = last.failure
        message = f"{said.message}; {why}" if said.message else why
        death = f"{said.death}-over"  # it is told once more, and is another failure
        over = said.replace(message=message, death=death, replaceable=False)
        self._escalate(members.owner(), over)

    def _close(self) -> None:
        if self._ending is not None:
            self._ending.set()
