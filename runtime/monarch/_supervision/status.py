"""What the processes of a mesh are doing, without asking them."""

from __future__ import annotations

from time import monotonic

from monarch._actor.process import process
from monarch._proc import hosts, local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._mesh.proc_mesh import ProcMesh

__all__ = ["ProcStatus", "status"]

_PATIENCE = 1.0  # seconds that a host agent has to answer


class ProcStatus:
    """One process at one moment.

    Attributes:
        rank: its place in the mesh that was asked about.
        pid: its process id; None before it has started and after its end.
        state: `idle`, `busy`, `stopped` (by a signal, or a debugger), `gone`, or `unknown`, where
            its host has not answered.
        running: what it is handling as `actor.endpoint`, the oldest first.
        seconds: for how long it has been handling the oldest; 0 when idle.

    """

    __slots__ = ("pid", "rank", "running", "seconds", "state")

    def __init__(
        self, rank: int, pid: int | None, state: str, running: tuple[str, ...], seconds: float
    ) -> None:
        self.rank = rank
        self.pid = pid
        self.state = state
        self.running = running
        self.seconds = seconds

    def __str__(self) -> str:
        if self.state != "busy":
            return f"rank {self.rank} is {self.state}"
        return f"rank {self.rank} is busy for {self.seconds:.1f} s in {', '.join(self.running)}"

    def __repr__(self) -> str:
        return f"<ProcStatus: {self}>"


def status(procs: ProcMesh) -> list[ProcStatus]:
    """What each process of a mesh is doing, by rank.

    It is read from memory shared with the processes, so one that answers nobody is told of as well.
    For processes of other hosts their host agents read it, and have a second to answer.

    Args:
        procs: a mesh, or a slice of one, that this process has spawned.

    Raises:
        RuntimeError: the mesh was spawned by another process.

    """
    from monarch._proc.state import is_stopped  # noqa: PLC0415 - rarely asked for

    placement = procs._procs  # noqa: SLF001 - of a lower floor
    if placement.owner[0] != process().id:
        raise RuntimeError(f"status({procs}): only who spawned the mesh can tell")
    ids = [placement.refs[base].id for base in procs._ranks()]  # noqa: SLF001 - as above
    elsewhere = hosts.doing(ids, _PATIENCE)
    now = monotonic()
    names = {actor: spawned.name for actor, spawned in placement.spawned.items()}
    found = []
    for rank, proc in enumerate(ids):
        pid = local.pid(proc)
        if hosts.host_of(proc) is None:
            stopped, running = pid is not None and is_stopped(pid), local.running(proc)
            known = True
        else:
            known = proc in elsewhere
            stopped, running = elsewhere.get(proc, (False, []))
        texts = tuple(f"{names.get(one.actor, '?')}.{one.endpoint}" for one in running)
        if not local.lives(proc):
            state = "gone"
        elif stopped or not known:
            state = "stopped" if stopped else "unknown"
        else:
            state = "busy" if running else "idle"
        seconds = now - running[0].since if running else 0.0
        found.append(ProcStatus(rank, pid, state, texts, seconds))
    return found
