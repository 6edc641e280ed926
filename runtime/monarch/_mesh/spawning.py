"""How processes are started for a mesh: what each one is told, and where it is asked for."""

# ruff: noqa: SLF001 - meshes of the same package
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import index as to_int

from monarch import config
from monarch._actor.cell import cells
from monarch._actor.current import sender
from monarch._actor.pickling import pack
from monarch._actor.process import process
from monarch._mesh import placements
from monarch._mesh.ids import new_id, new_ids
from monarch._mesh.placement import Placement, ProcRef
from monarch._restart import Restart
from monarch._shape import Extent, Point, Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from monarch._mesh.host_mesh import HostMesh, HostRef
    from monarch._mesh.spares import Spares
    from monarch._proc.spec import ProcSpec

__all__ = ["Request", "start", "start_again"]

_FEW = 1000


class Request:
    """What `spawn_procs` was asked for, checked. Kept, so that ranks can be started again."""

    def __init__(
        self,
        hosts: HostMesh,
        per_host: Mapping[str, int],
        bootstrap: Callable[[], Any] | None,
        name: str | None,
        proc_bind: Sequence[Mapping[str, str]] | None,
        bootstrap_command: Any | None,
        restart: Restart | None,
    ) -> None:
        if restart is not None and not isinstance(restart, Restart):
            raise TypeError(
                hosts._said(
                    f"spawn_procs(restart={restart!r})",
                    "restart is a monarch.supervision.Restart, or None",
                )
            )
        if name is not None and not isinstance(name, str):
            wanted = "name is what messages call the processes, or None"
            raise TypeError(hosts._said(f"spawn_procs(name={name!r})", wanted))
        if bootstrap is not None and not callable(bootstrap):
            wanted = "bootstrap is a function without arguments, or None"
            raise TypeError(hosts._said(f"spawn_procs(bootstrap={bootstrap!r})", wanted))
        if proc_bind is not None and not _is_binding(proc_bind):
            wanted = 'proc_bind is a list of dicts, as [{"cpus": "0-3"}], or None'
            raise TypeError(hosts._said(f"spawn_procs(proc_bind={proc_bind!r})", wanted))
        self.restart = restart
        self.spares: list[Spares] = []
        self.another: Callable[[int], object] | None = None  # puts another host in this place
        self.per_host = _sizes(hosts, per_host)
        self.count = prod(self.per_host.values())
        labels = hosts._labels
        extent = Extent((*labels, *self.per_host), (*hosts._ndslice.sizes, *self.per_host.values()))
        self.extent = extent
        self.shape = Shape.dense(extent)
        self.name = name or "procs"
        self.hosts = hosts._refs()
        self.python = hosts._python
        self.bootstrap = None if bootstrap is None else pack(bootstrap)
        self.command = bootstrap_command
        self.bind = None if proc_bind is None else [dict(one) for one in proc_bind]
        if self.bind is not None and len(self.bind) != self.count:
            raise ValueError(
                hosts._said(
                    f"spawn_procs(per_host={per_host!r})",
                    f"proc_bind is for each process of a host, {self.count} of them, and has "
                    f"{len(self.bind)}",
                )
            )
        self.commands = [self._command(hosts, rank) for rank in range(extent.nelements)]

    def host(self, rank: int) -> HostRef:
        """The host of a rank."""
        return self.hosts[rank // self.count]

    def spec(self, rank: int, proc: int, incarnation: int) -> ProcSpec:
        """What the process of a rank is started with."""
        from monarch._proc.spec import ProcSpec  # noqa: PLC0415 - a proc that spawns none does without

        program, variables = self.commands[rank]
        node = self.host(rank).node
        known = {"MONARCH_NODE_ID": node} if node else {}
        return ProcSpec(
            proc,
            rank,
            (self.extent.labels, self.extent.sizes),
            self.name,
            {**config.inherited(), **known, **variables},
            self.bind[rank % self.count] if self.bind else None,
            self.bootstrap,
            program,
            process().id,
            incarnation,
            rank // self.count,
            tuple(self.per_host),
        )

    def _command(
        self, hosts: HostMesh, rank: int
    ) -> tuple[list[str] | None, dict[str, str | None]]:
        command = self.command
        if callable(command) and not hasattr(command, "program"):
            command = command(Point(rank, self.extent))
        if command is not None:
            if not hasattr(command, "program"):
                wanted = (
                    "bootstrap_command is a BootstrapCommand, a function that gives one for a "
                    "point, or None"
                )
                raise TypeError(hosts._said(f"spawn_procs(bootstrap_command={command!r})", wanted))
            return [command.program, *command.args], dict(command.env or {})
        if self.python is not None:
            return [self.python, "-m", "monarch._proc.child"], {}
        return None, {}


def _is_binding(given: object) -> bool:
    return isinstance(given, Sequence) and all(isinstance(one, Mapping) for one in given)


def start(request: Request) -> Placement:
    """Ask for the processes of a new mesh."""
    here = process()
    ranks = range(request.extent.nelements)
    _check_reached(request.hosts)  # by then each has told its name
    refs = {
        rank: _ref(proc, rank, request.host(rank))
        for rank, proc in zip(ranks, new_ids(len(ranks)), strict=True)
    }
    placement = Placement(new_id(), request.name, request.extent, (here.id, sender()), refs)
    placement.request = request
    placements.own(placement)
    if placement.owner[1]:
        cells[placement.owner[1]].at_end(lambda: _outlived(placement))
    try:
        _ask(request, refs.values())
    except BaseException:
        placements.disown(placement)
        raise
    return placement


def _ref(proc: int, rank: int, host: HostRef, incarnation: int = 0) -> ProcRef:
    return ProcRef(proc, rank, host.public, host.name, incarnation, host.node)


def start_again(placement: Placement, ranks: Iterable[int]) -> None:
    """Ask for new processes in the place of some ranks', and send to those from now on."""
    from monarch._proc import logs  # noqa: PLC0415 - few programs replace any

    request = placement.request
    refs = []
    for rank in ranks:
        old = placement.refs[rank]
        host = request.host(rank)
        _check_reached([host])
        ref = _ref(new_ids(1)[0], rank, host, old.incarnation + 1)
        placement.replace(rank, ref)
        logs.follow(old.id, ref.id, host.proc)
        placements.note_place(placement, rank)
        refs.append(ref)
    _ask(request, refs)


def _outlived(placement: Placement) -> None:
    """The actor that spawned these processes has ended, and so do they."""
    if not placement.stopped:
        from monarch._mesh.ends import stop_procs  # noqa: PLC0415 - it knows this module

        stop_procs(placement, "the actor that spawned it has ended", f"{placement!r}")


def _ask(request: Request, refs: Iterable[ProcRef]) -> None:
    from monarch._proc import local  # noqa: PLC0415 - a proc that spawns none does without

    refs = list(refs)
    _check_reached(request.host(ref.rank) for ref in refs)
    by_host: dict[int, list[ProcSpec]] = {}
    for ref in refs:
        spec = request.spec(ref.rank, ref.id, ref.incarnation)
        by_host.setdefault(request.host(ref.rank).proc, []).append(spec)
    for host, specs in by_host.items():
        local.spawn(host, specs)


def _check_reached(hosts: Iterable[HostRef]) -> None:
    """Wait for hosts that are not reached yet; all that are not by then are named."""
    from monarch.errors import LinkError  # noqa: PLC0415 - only on the way out

    missing = []
    for host in {id(host): host for host in hosts}.values():
        if not host.known():
            try:
                _ = host.proc
            except LinkError as error:
                missing.append(error)
    if missing:
        raise LinkError(missing[0].code, "; ".join(map(str, missing)))


def _sizes(hosts: HostMesh, per_host: Mapping[str, int]) -> dict[str, int]:
    asked = f"spawn_procs(per_host={per_host!r})"
    wanted = 'per_host is a dict of sizes by dimension, as {"gpus": 4}'
    if not hasattr(per_host, "items"):
        raise TypeError(hosts._said(asked, wanted))
    sizes = {}
    for label, size in per_host.items():
        if not isinstance(label, str):
            raise TypeError(hosts._said(asked, wanted))
        if label in hosts._labels:
            raise ValueError(hosts._said(asked, f"{label!r} is a dimension of the hosts already"))
        try:
            sizes[label] = to_int(size)
        except TypeError:
            raise TypeError(hosts._said(asked, f"sizes are integers, {label!r} is not")) from None
        if sizes[label] < 1:
            raise ValueError(hosts._said(asked, f"there is no process in {label!r}"))
    count = prod(sizes.values())
    if count > _FEW and count > (most := _most()):
        raise ValueError(
            hosts._said(asked, f"that is {count} processes on a host, and there can be {most}")
        )
    return sizes


def _most() -> int:
    """How many processes a machine like this can have."""
    try:
        with open("/proc/sys/kernel/pid_max", "rb") as limit:  # noqa: PTH123 - pathlib is slow to import
            return int(limit.read())
    except OSError:
        return 99_998  # macOS
