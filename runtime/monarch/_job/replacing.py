"""Processes on the hosts of a job of their own, whose lost nodes are replaced."""

# ruff: noqa: SLF001 - a mesh like those it is made of
from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from monarch import config
from monarch._actor.future import Done, Pending
from monarch._actor.pickling import loads, pack
from monarch._actor.process import process
from monarch._actor.replies import ERROR, OK
from monarch._mesh.host_mesh import HostMesh
from monarch._mesh.proc_mesh import ProcMesh
from monarch._mesh.respawn import respawn
from monarch._mesh.spares import Spares
from monarch._proc.hosts import shut_out
from monarch._shape import Extent, Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from monarch._actor.future import Future
    from monarch._core import Inbox
    from monarch._job.job import JobTrait
    from monarch._mesh.host_mesh import HostRef
    from monarch._mesh.placement import Placement
    from monarch._restart import Restart

HOSTS, SPARES = "hosts", "spares"


class ReplacingMesh(ProcMesh):
    """A `ProcMesh` with a job of its own, which gives another host for one that is lost."""

    def __init__(
        self,
        job: JobTrait,
        nodes: int,
        gpus_per_node: int,
        spares: int = 0,
        spare_procs: int = 0,
        name: str | None = None,
        bootstrap: Callable[[], Any] | None = None,
        restart: Restart | None = None,
    ) -> None:
        """Use a job that has the meshes "hosts", and "spares" where there are some.

        Arguments are those of `ProcessMesh`'s constructors; the job must not be stored.
        """
        found = job.state(cached_path=None)
        self._job = job
        self._lock = Lock()
        self._spares: list[HostRef] = found.spares._refs() if spares else []
        self._gave_up: set[str] = set()
        self._per_node = gpus_per_node
        refs = found.hosts._refs()
        hosts = HostMesh(refs, Shape.dense(Extent((HOSTS,), (nodes,))))
        try:
            made = hosts.spawn_procs(
                {"gpus": gpus_per_node},
                name=name,
                bootstrap=bootstrap,
                restart=restart,
                spares=spare_procs,
            )
            for spare in self._spares:
                self._stand_by(made._procs, spare)
        except BaseException:
            job.kill()
            raise
        super().__init__(made._procs, made._shape, hosts)
        made._procs.request.another = self._replace_lost

    @property
    def nodes(self) -> list[str]:
        """The ids of the nodes in use, in the order of the dimension "hosts"."""
        return [host.node for host in self._procs.request.hosts]

    @property
    def spares(self) -> list[str]:
        """The ids of the nodes that stand by."""
        return [host.node for host in self._spares]

    def replace_node(self, node_id: str | None = None) -> Future[None]:
        """Put another host in the place of a node, and new processes in its ranks.

        A spare host comes first; without one the job is asked for another, and this waits until
        that is there. Then it returns, and all handles reach the new processes: calls wait for
        their actors, which are made again. The other nodes go on undisturbed. Processes that the
        old node still has are killed, and whatever they do from then on has no effect. Replacing a
        node a second time does nothing.

        Args:
            node_id: as in `ActorCrashError.node_id`; None for all nodes that have lost ranks.

        Returns:
            A future that is done once the constructors are through.

        Raises:
            ValueError: there is no such node.
            JobError: the job has no other host to give.
            SupervisionError: the mesh was stopped.

        """
        procs = self._procs
        if procs.stopped:
            raise self._stopped(f"replace_node({node_id!r})")
        with self._lock:
            if node_id is None:
                places = sorted({rank // procs.request.count for rank in procs.lost})
            elif node_id in self.nodes:
                places = [self.nodes.index(node_id)]
            elif node_id in self._gave_up:
                return Done(None)
            else:
                known = ", ".join(self.nodes)
                raise ValueError(self._said(f"replace_node({node_id!r})", f"the nodes are {known}"))
            count = procs.request.count
            ranks: list[int] = []
            try:
                for place in places:
                    here = range(place * count, (place + 1) * count)
                    procs.leaving.update(procs.refs[rank].id for rank in here)
                    self._put_another(place)
                    ranks += here
            except BaseException:
                respawn(procs, ranks)  # where there is another host already
                raise
            return respawn(procs, ranks)

    def stop(self, reason: str = "stopped by client") -> Future[None]:
        """Stop the processes, and end the job with its hosts.

        Args:
            reason: what later calls are told.

        """
        if self._procs.stopped:
            return Done(None)
        here = process()
        inbox = here.engine.open_inbox(False)
        stopped = super().stop(reason)

        def end() -> None:
            try:
                stopped.get()
                self._job.kill()
                outcome = OK, pack(None)
            except Exception as error:  # noqa: BLE001 - who waits gets it
                outcome = ERROR, pack(error)
            here.engine.post(here.id, inbox.id, 0, *outcome, None)

        here.start_thread(end, "monarch-job")
        return Pending(inbox, 1, _ended, f"{self._title()} and its hosts to stop")

    def _replace_lost(self, place: int) -> None:
        """Put another host in the place of one that is lost; its ranks start again by a policy."""
        with self._lock:
            self._put_another(place)

    def _put_another(self, place: int) -> None:
        procs = self._procs
        hosts = procs.request.hosts
        old = hosts[place]
        ranks = range(place * procs.request.count, (place + 1) * procs.request.count)
        limit = config.value("heartbeat_interval") * config.value("heartbeat_misses")
        shut_out([procs.refs[rank].id for rank in ranks], limit)
        hosts[place] = self._another(old)
        self._gave_up.add(old.node)
        if self._hosts is not None:
            self._hosts._hosts.refs = tuple(hosts)

    def _another(self, old: HostRef) -> HostRef:
        """A host in place of `old`."""
        engine = process().engine
        while self._spares:
            spare = self._spares.pop(0)
            if engine.has_link(spare.proc):
                self._job_gives_up(old)
                return spare
        return self._job.replace_node(old.node)

    def _job_gives_up(self, old: HostRef) -> None:
        """Have the job end what is left of a node, and replace it by a new spare."""

        def refill() -> None:
            try:
                spare = self._job.replace_node(old.node)
                spare.reached().get()
            except Exception:  # noqa: BLE001 - none now; the next loss asks again, and says why
                return
            self._stand_by(self._procs, spare)
            self._spares.append(spare)

        process().start_thread(refill, "monarch-spare")

    def _stand_by(self, procs: Placement, spare: HostRef) -> None:
        """Have processes ready on a spare host."""
        host = HostMesh([spare], Shape.unity())
        name = f"{procs.name} on {spare.node}"
        procs.request.spares.append(Spares(host, self._per_node, name, refills=False))

    def _new_with_shape(self, shape: Shape) -> Any:
        return self if shape == self._shape else ProcMesh(self._procs, shape, self._hosts)


def _ended(inbox: Inbox) -> None:
    _rank, status, data, _buffers = inbox.get(0)
    if status:
        raise loads(data)
