"""Where a caller is: its own host and process, as meshes."""

from __future__ import annotations

import os

from monarch._actor.context import provide
from monarch._actor.pickling import loads, pack
from monarch._actor.process import at_start, process
from monarch._actor.replies import ERROR, OK
from monarch._mesh import placements
from monarch._mesh.host_mesh import HostMesh, HostRef
from monarch._mesh.ids import new_id
from monarch._mesh.placement import Placement, ProcRef
from monarch._mesh.proc_mesh import ProcMesh
from monarch._shape import Extent, Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._actor.cell import Cell
    from monarch._actor.process import Process

__all__ = ["this_host", "this_proc"]

_ASK_S = 10.0
_here: dict[int, tuple[HostMesh, ProcMesh]] = {}


def this_host() -> HostMesh:
    """The machine that this runs on, without dimensions: `this_host().spawn_procs(...)`.

    Processes spawned by it belong to the actor that calls this, or to the program.
    """
    # What spawns no processes does without; what does begins with what takes longest.
    from monarch._proc import launch  # noqa: PLC0415

    launch.ahead()
    from monarch._proc import local  # noqa: PLC0415

    local.spawner().warm_up()
    return _meshes()[0]


def this_proc() -> ProcMesh:
    """The process that this runs in, without dimensions.

    Actors spawned in it by the program run inside the program's own process.
    """
    return _meshes()[1]


def _meshes() -> tuple[HostMesh, ProcMesh]:
    own = process().id
    found = _here.get(own)
    if found is None:
        name = os.uname().nodename
        host = HostMesh([HostRef(own, "", name)], Shape.unity())
        none = Extent((), ())
        procs = Placement(new_id(), "this_proc", none, (own, 0), {0: ProcRef(own, 0, "", name)})
        placements.own(procs)
        _here.clear()
        found = _here[own] = (host, ProcMesh(procs, Shape.unity(), host))
    return found


def _proc_mesh(cell: Cell | None) -> ProcMesh:
    """The mesh of processes that an actor was spawned on."""
    if cell is None:
        return this_proc()
    found = placements.known(cell.mesh_id)
    if found is None:
        found = _ask(cell)
    return ProcMesh(found, found.whole)


def _ask(cell: Cell) -> Placement:
    """What the owner of the actor's mesh tells of it."""
    here = process()
    inbox = here.engine.open_inbox(True)
    here.tell(cell.owner[0], "where", (cell.mesh_id, inbox.id))
    # Not by a future: this may be the thread of an event loop, and the answer takes microseconds.
    if not inbox.wait(1, _ASK_S):
        raise TimeoutError(f"{cell!r}: its owner did not tell its mesh within {_ASK_S:g} s")
    _rank, status, data, _buffers = inbox.get(0)
    told = loads(data)
    if status:
        raise told
    return placements.placement(*told)


def _where(peer: int, body: tuple[int, int]) -> None:
    mesh, inbox = body
    found = placements.known(mesh)
    here = process()
    if found is None:
        gone = pack(LookupError("the mesh of this actor has been stopped"))
        here.engine.post(peer, inbox, 0, ERROR, gone, None)
    else:
        here.engine.post(peer, inbox, 0, OK, pack(found.told(found.whole)), None)


def _listen(here: Process) -> None:
    here.on("where", _where)


at_start(_listen)
provide("proc", lambda _cell: this_proc())
provide("host", lambda _cell: this_host())
provide("proc_mesh", _proc_mesh)
