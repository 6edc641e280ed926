"""The work of a process: its engine, the loop that serves its actors, and its end on request."""

from __future__ import annotations

from monarch._actor import dispatch
from monarch._actor import process as processes
from monarch._actor.cell import cells
from monarch._actor.lifecycle import STOP
from monarch._actor.pickling import dumps, loads
from monarch._link.address import parse
from monarch._proc import boards, finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from monarch._actor.process import Process
    from monarch._proc.spec import ProcSpec

LINK_LOST = 71  # exit code of a process whose parent is gone

own: ProcSpec | None = None
"""What this process was started with; None in a program itself."""


def work(spec: ProcSpec, link: int, settings: dict[str, Any], ready: Callable[[], None]) -> int:
    """Serve actors until told to stop; the exit code."""
    global own  # noqa: PLW0603 - what a process is, it is for good
    own = spec
    finding.belong(spec.owner)
    parent: int = settings["parent"]
    here = processes.start_proc(spec.id, parent, None)
    if here.gate is not None:
        here.gate.public = settings.get("public", "")
        if settings.get("gateway"):
            here.gate.go_by(parse(settings["gateway"]))
    boards.keep(here.engine, spec, settings)
    here.on("stop", lambda _peer, reason: _begin_end(here, str(reason)))
    here.on("log_level", _set_log_level)
    here.on_link_lost(lambda peer: _orphaned(here, peer))
    if spec.bootstrap is not None:
        _bootstrap(spec.bootstrap)
    ready()
    worker = here.engine.main_worker()  # before there are messages: actors are to live here
    here.engine.add_link(parent, link)
    dispatch.work(worker)
    here.shutdown()
    return 0


def become(values: tuple[Any, ...], *, devices: bool) -> None:
    """Be another process than the one this was started as: it has stood by for that."""
    import os  # noqa: PLC0415 - loaded anyway

    from monarch._proc import binding, environment  # noqa: PLC0415 - as above
    from monarch._proc.spec import ProcSpec  # noqa: PLC0415 - as above

    global own  # noqa: PLW0603 - see there
    spec = ProcSpec.from_values(values)
    for name, value in environment.variables(spec, os.environ, devices=devices).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    binding.apply(spec.bind)
    own = spec
    if spec.bootstrap is not None:
        _bootstrap(spec.bootstrap)


def _bootstrap(data: bytes) -> None:
    result = loads(data)()
    if hasattr(result, "__await__"):
        import asyncio  # noqa: PLC0415 - few bootstraps are async

        asyncio.run(_await(result))


async def _await(result: Any) -> Any:
    return await result


def _set_log_level(_peer: int, level: Any) -> None:
    """What the root logger lets through, to standard error if nowhere else."""
    import logging  # noqa: PLC0415 - only where it is asked for

    logging.basicConfig()
    logging.getLogger().setLevel(level)


def _begin_end(here: Process, reason: str) -> None:
    """Runs in the control thread, which must stay free: the actors have to end first."""
    here.start_thread(lambda: _end(here, reason), "monarch-stop")


def _end(here: Process, reason: str) -> None:
    """Let every actor handle what it has been sent and clean up, then end the process."""
    engine = here.engine
    ids = list(cells)
    if ids:
        targets = engine.targets([here.id] * len(ids), ids)
        data, buffers = dumps(("stop", reason))
        inbox = engine.call(targets, "", data, buffers, 0, b"", STOP)
        inbox.wait(len(ids), None)
    here.shutdown()


def _orphaned(here: Process, peer: int) -> None:
    import os  # noqa: PLC0415 - loaded anyway

    if peer == here.parent and not here.stopped:
        os._exit(LINK_LOST)
