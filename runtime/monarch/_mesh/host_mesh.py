"""`HostMesh`: machines that processes are started on."""

# ruff: noqa: SLF001 - meshes of the same package
from __future__ import annotations

from monarch._actor.future import Combined, Done
from monarch._actor.process import process
from monarch._mesh import spawning
from monarch._mesh.proc_mesh import ProcMesh
from monarch._proc import agent
from monarch._proc.finding import published
from monarch._shape import Region, Shape, ShapedMesh, Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Self

    from monarch._actor.future import Future
    from monarch._mesh.workspace import Workspace
    from monarch._restart import Restart
    from monarch._shape import Point

__all__ = ["HostMesh", "HostRef", "host_of"]

assert agent  # noqa: S101 - who holds hosts may be asked for processes


class HostRef:
    """One machine, by the process that starts others there.

    Attributes:
        proc: the id of that process; this program's or proc's own for the host it runs on.
        address: where it listens; empty where the id tells.
        name: the name of the machine.
        node: the host's id in its job, empty without one.
        public: where other hosts reach its processes; empty where they do not.

    """

    __slots__ = ("address", "name", "node", "proc", "public")

    def __init__(
        self, proc: int, address: str = "", name: str = "", node: str = "", public: str = ""
    ) -> None:
        self.proc = proc
        self.address = address
        self.name = name
        self.node = node
        self.public = public

    def known(self) -> bool:
        """Whether `proc` is known without waiting for it."""
        return True

    def reached(self) -> Future[Any]:
        """A future that is done once the host has answered."""
        here = process()
        return Done(None) if self.proc == here.id else here.asking(self.proc, "ready", None)

    def __reduce__(self) -> tuple[object, ...]:
        public = published(process(), self.public)
        return HostRef, (self.proc, self.address or public, self.name, self.node, public)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostRef) and self.proc == other.proc

    def __hash__(self) -> int:
        return hash(self.proc)

    def __repr__(self) -> str:
        return f"<host {self.name or '?'}, process {self.proc:016x}>"


class _Hosts:
    """What all slices of one mesh of hosts share."""

    __slots__ = ("end", "refs", "spawned", "stopped")

    def __init__(
        self, refs: Sequence[HostRef], end: Callable[[HostRef, bool], Future[Any]] | None
    ) -> None:
        self.refs = tuple(refs)
        self.end = end
        self.spawned: list[ProcMesh] = []
        self.stopped = ""


class HostMesh(ShapedMesh):
    """Machines with named dimensions, from `this_host()`, a job or `attach_to_workers`.

    It can be sent to any actor, which can spawn on the same hosts. As an async context manager it
    is shut down at the end.
    """

    def __init__(
        self,
        refs: Sequence[HostRef],
        shape: Shape,
        end: Callable[[HostRef, bool], Future[Any]] | None = None,
    ) -> None:
        self._hosts = _Hosts(refs, end)
        self._shape = shape
        self._owned = True
        self._python: str | None = None

    def spawn_procs(
        self,
        per_host: Mapping[str, int] | None = None,
        bootstrap: Callable[[], Any] | None = None,
        name: str | None = None,
        proc_bind: Sequence[Mapping[str, str]] | None = None,
        bootstrap_command: Any | Callable[[Point], Any] | None = None,
        restart: Restart | None = None,
        spares: int = 0,
    ) -> ProcMesh:
        """Start processes on each host; returns at once.

        The dimensions of the result are those of the hosts, then those of `per_host`. Each process
        gets `RANK`, `WORLD_SIZE` and the like, and with a dimension "gpus" the device of its index
        (`CUDA_VISIBLE_DEVICES`, `HIP_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES`), before anything of
        the program's is imported there.

        Args:
            per_host: sizes of the dimensions within a host; one process a host without it.
            bootstrap: called in each process before its first actor; may be `async`.
            name: how messages call the processes.
            proc_bind: for each process of a host, any of `cpunodebind`, `membind`, `physcpubind`
                and `cpus`, as numactl and taskset take them.
            bootstrap_command: a `BootstrapCommand` to run in place of this interpreter, or a
                function that gives one for a point of the result.
            restart: how processes that die start again by themselves, with their actors; without
                it, who spawned them is told of each death.
            spares: processes that stand by on each host, with the modules of the actors imported.
                One of them becomes that of a rank that starts again there, and another is started.

        Raises:
            TypeError: `per_host` is no dict of integers by name, or another argument not what it
                is above.
            ValueError: a dimension is one of the hosts' or has no process, there are more processes
                than a host can have, `proc_bind` is not as long as there are processes on a host,
                or `spares` is no number of processes, or goes with a `bootstrap_command`.
            RuntimeError: the hosts were shut down.
            LinkError: there is no link to a worker that the program attached to; it is named.
            OSError: there are no descriptors left for the links to that many processes.

        """
        self._check_running("spawn_procs()")
        request = spawning.Request(
            self,
            {} if per_host is None else per_host,
            bootstrap,
            name,
            proc_bind,
            bootstrap_command,
            restart,
        )
        if spares and (not isinstance(spares, int) or spares < 0 or bootstrap_command is not None):
            raise ValueError(
                self._said(
                    f"spawn_procs(spares={spares!r})",
                    "spares is a number of processes, without bootstrap_command",
                )
            )
        procs = ProcMesh(spawning.start(request), request.shape, self)
        if spares:
            from monarch._mesh.spares import Spares  # noqa: PLC0415 - it knows this module

            request.spares.append(Spares(self, spares, request.name))
        spawned = self._hosts.spawned
        spawned[:] = [one for one in spawned if not one._procs.stopped]
        spawned.append(procs)
        return procs

    @property
    def initialized(self) -> Future[bool]:
        """True once the hosts can be reached."""
        self._check_running("initialized")
        return Combined([host.reached() for host in self._refs()], lambda _names: True)

    def with_python_executable(self, python_executable: str) -> HostMesh:
        """The same hosts, with another interpreter for the processes that are spawned on them."""
        found = self._part(self._shape)
        found._owned = self._owned
        found._python = str(python_executable)
        return found

    async def sync_workspace(
        self, workspace: Workspace, conda: bool = False, auto_reload: bool = False
    ) -> None:
        """Bring folders of this program to the hosts, below their `WORKSPACE_DIR`.

        Files that are there with the same size, time and mode are left alone; those that are only
        there are removed. `__pycache__`, `.git` and links to folders are passed over.

        Args:
            workspace: the folders.
            conda: False. Environments of conda are not copied.
            auto_reload: load the modules that changed again, in the processes that were spawned by
                this mesh and run.

        Raises:
            FileNotFoundError: a folder is not there.
            ActorError: it cannot be written on a host, or `WORKSPACE_DIR` is not set there.
            ValueError: `conda` is true.

        """
        self._check_running("sync_workspace()")
        if conda:
            raise ValueError(
                self._said(
                    "sync_workspace(conda=True)",
                    "environments are not copied; install one on each host and name its "
                    "interpreter with with_python_executable",
                )
            )
        from monarch._mesh.workspace import sync  # noqa: PLC0415 - few programs do

        await sync(self, workspace, auto_reload=auto_reload)

    def shutdown(self) -> Future[None]:
        """Stop all processes that were spawned by this mesh, and the hosts' own programs.

        The hosts cannot be used afterwards. To keep them for the next client, `stop()`.

        Raises:
            RuntimeError: this mesh is a slice, was sent here, or was shut down before.

        """
        return self._end("shutdown()", last=True)

    def stop(self) -> Future[None]:
        """Stop all processes that were spawned by this mesh; the hosts stay for others.

        Raises:
            RuntimeError: this mesh is a slice, was sent here, or was shut down.

        """
        return self._end("stop()", last=False)

    def _end(self, asked: str, *, last: bool) -> Future[None]:
        self._check_running(asked)
        hosts = self._hosts
        if not self._owned:
            raise RuntimeError(
                self._said(
                    asked, "cannot shut down `HostMesh` that is a reference instead of owned"
                )
            )
        if last:
            hosts.stopped = "it was shut down"
        reason = "the host mesh was shut down" if last else "the host mesh was stopped"
        here = process().id
        ended: list[Future[Any]] = [*self.stop_procs(reason)]

        def hosts_too(_done: list[Any]) -> None:
            return None

        stopped = Combined(ended, hosts_too) if ended else Done(None)
        if hosts.end is None:
            return stopped
        end = hosts.end
        more = [end(host, last) for host in hosts.refs if not host.known() or host.proc != here]
        return Combined([stopped, *more], hosts_too)

    def stop_procs(self, reason: str) -> list[Future[None]]:
        """Stop the processes that were spawned by this mesh; a future for each mesh of them."""
        hosts = self._hosts
        spawned = [one for one in hosts.spawned if not one._procs.stopped]
        hosts.spawned.clear()
        return [one.stop(reason) for one in spawned]

    @property
    def region(self) -> Region:
        """Labels and the base ranks of the hosts."""
        return self._shape.region

    @property
    def stream_logs(self) -> bool:
        """Whether output of the processes comes to this program without being asked for."""
        return False

    @property
    def is_fake_in_process(self) -> bool:
        """False: processes on these hosts are processes of the system."""
        return False

    async def __aenter__(self) -> Self:
        self._check_running("async with")
        return self

    async def __aexit__(self, *_error: object) -> None:
        if not self._hosts.stopped:
            await self.shutdown()

    def _check_running(self, asked: str) -> None:
        if self._hosts.stopped:
            raise RuntimeError(self._said(asked, "HostMesh has already been shut down"))

    def _refs(self) -> list[HostRef]:
        refs = self._hosts.refs
        return [refs[rank] for rank in self._shape.ranks()]

    def _title(self) -> str:
        return f"host mesh {self.extent}"

    def _part(self, shape: Shape) -> HostMesh:
        found = HostMesh.__new__(HostMesh)
        found._hosts = self._hosts
        found._shape = shape
        found._owned = False
        found._python = self._python
        return found

    def _new_with_shape(self, shape: Shape) -> Self:
        return self if shape == self._shape else self._part(shape)  # type: ignore[return-value]  # final

    def __str__(self) -> str:
        return f"<{self._title()}>"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HostMesh):
            return NotImplemented
        return self._hosts.refs == other._hosts.refs and self._shape == other._shape

    def __hash__(self) -> int:
        return hash((self._hosts.refs, self._shape))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._labels, self._ndslice.sizes, self._refs(), self._python)


def host_of(procs: ProcMesh) -> HostMesh:
    """The host of a mesh of one process, from which that process would spawn."""
    rank = procs._ranks()[0]
    ref = procs._procs.refs[rank]
    hosts = procs._hosts
    if hosts is None:
        return HostMesh([HostRef(ref.id, ref.address, ref.host)], Shape.unity())
    per_host = procs._procs.extent.nelements // len(hosts)
    found = hosts._refs()[rank // per_host]
    part = HostMesh([found], Shape.unity())
    part._owned = False
    part._python = hosts._python
    return part


def _rebuild(
    labels: tuple[str, ...], sizes: list[int], refs: list[HostRef], python: str | None
) -> HostMesh:
    found = HostMesh(refs, Shape(labels, Slice.new_row_major(sizes)))
    found._owned = False
    found._python = python
    for ref in refs:
        if ref.address:
            process().add_peer(ref.proc, ref.address)
    return found
