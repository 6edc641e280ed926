"""What a process does for others: it starts processes on its host, tells of them and ends them.

They belong to who asked for them, and end with it.
"""

from __future__ import annotations

import os
import sys

from monarch._actor.process import at_start, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from monarch._actor.process import Process
    from monarch._proc.spec import ExitReport

__all__ = ["NODE_VARIABLE", "asked_by", "described", "platform_version", "version"]

NODE_VARIABLE = "MONARCH_NODE_ID"  # the host's id in its job
GRACE = 0.5  # seconds that processes get to end when who asked for them is gone

_askers: dict[int, int] = {}  # by process, who asked for it
_beats: dict[int, tuple[float, int]] = {}  # by program that attached, its heartbeat and misses
_serving: Process | None = None


def asked_by(client: int) -> list[int]:
    """The processes that another one asked for here and whose end is not known yet."""
    return [proc for proc, other in _askers.items() if other == client]


def _spawn(client: int, values: list[tuple[Any, ...]]) -> None:
    from monarch._proc import local  # noqa: PLC0415 - most processes are asked for none
    from monarch._proc.spec import ExitReport, ProcSpec  # noqa: PLC0415

    global _serving  # noqa: PLW0603 - listens once
    here = process()
    if _serving is not here:
        _serving = here
        local.listen(on_started=_started, on_exit=_ended)
    specs = [ProcSpec.from_values(each) for each in values]
    taken = [spec.id for spec in specs if spec.id in _askers or local.lives(spec.id)]
    if taken:
        raise ValueError(f"process {taken[0]:016x} is asked for, and there is one of this id")
    for spec in specs:
        _askers[spec.id] = client
    try:
        local.spawner().spawn(specs)
    except (OSError, RuntimeError, ValueError) as error:
        for spec in specs:
            _ended(ExitReport(spec.id, 0, reason=f"{type(error).__name__}: {error}"))


def _attached(client: int, beat: tuple[float, int] | None) -> None:
    """A program attaches: it is looked at as often as it looks at this host."""
    here = process()
    if beat is not None:  # another release may say less
        _beats[client] = beat
        here.engine.set_heartbeat(client, *beat)
    here.tell(client, "host_is", described(here))


def _stop(_client: int, body: tuple[list[int], str, float]) -> None:
    from monarch._proc import local  # noqa: PLC0415 - as above

    local.stop(*body)


def _kill(_client: int, body: tuple[list[int], bool]) -> None:
    from monarch._proc import local  # noqa: PLC0415 - as above

    procs, expected = body
    local.kill(procs, expected=expected)


def _rename(_client: int, body: tuple[list[int], str]) -> None:
    from monarch._proc import local  # noqa: PLC0415 - as above

    for proc in body[0]:
        local.rename(proc, body[1])


def _started(proc: int, pid: int) -> None:
    client = _askers.get(proc)
    if client is not None:
        here = process()
        if client in _beats:
            here.engine.set_heartbeat(proc, *_beats[client])
        here.tell(client, "proc_started", (proc, pid))


def _ended(report: ExitReport) -> None:
    client = _askers.pop(report.proc, None)
    if client is not None:
        from monarch._proc import local  # noqa: PLC0415 - as above

        ran = [(one.actor, one.endpoint, one.since) for one in local.running(report.proc)]
        process().tell(client, "proc_ended", (report.as_dict(), ran))


def _doing(_client: int, procs: list[int]) -> dict[int, tuple[bool, list[tuple[int, str, float]]]]:
    """Of each process, whether it is stopped and what it handles: actor, endpoint, for how long."""
    from time import monotonic  # noqa: PLC0415 - as below

    from monarch._proc import local  # noqa: PLC0415 - most processes are asked for none
    from monarch._proc.state import is_stopped  # noqa: PLC0415 - as above

    now = monotonic()
    found = {}
    for proc in procs:
        pid = local.pid(proc)
        running = [(one.actor, one.endpoint, now - one.since) for one in local.running(proc)]
        found[proc] = pid is not None and is_stopped(pid), running
    return found


def described(here: Process) -> dict[str, Any]:
    """What this process tells of its host and itself to who attaches to it."""
    return {
        "name": os.uname().nodename,
        "node": os.environ.get(NODE_VARIABLE) or os.uname().nodename,
        "public": "" if here.gate is None else here.gate.public,
        "pid": os.getpid(),
        "version": version(),
        "python": platform_version(),
    }


def version() -> str:
    """The release of this package; empty in a source tree that was never built."""
    import monarch  # noqa: PLC0415 - the package itself
    from monarch.errors import MonarchError  # noqa: PLC0415 - as above

    try:
        return str(monarch.__version__)
    except MonarchError:
        return ""


def platform_version() -> str:
    """The interpreter's version, as far as what is sent by value depends on it."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _stalled(peer: int, seconds: float | None) -> None:
    """Somebody misses beats: a client that is cut off is gone, a process that is stopped is killed.

    What a stopped process would do later counts as done by its successor.
    """
    here = process()
    if seconds is None:
        return
    if here.is_far(peer) and asked_by(peer):
        here.tell(peer, "unheard", seconds)  # only one way may be cut
        here.give_up(peer, "it does not answer")
        return
    client = _askers.get(peer)
    if client is None:
        return
    from monarch._proc import local  # noqa: PLC0415 - as above
    from monarch._proc.state import is_stopped  # noqa: PLC0415 - as above

    pid = local.pid(peer)
    if pid is None:
        if local.held_up(peer):
            here.give_up(peer, "it cannot start")
    elif is_stopped(pid):
        here.tell(client, "proc_hung", peer)
        local.kill([peer], expected=False)


def _client_lost(client: int) -> None:
    _beats.pop(client, None)
    found = asked_by(client)
    if found:
        from monarch._proc import local  # noqa: PLC0415 - as above

        for proc in found:
            del _askers[proc]
        local.stop(found, "the program that asked for it is gone", GRACE)


def _listen(here: Process) -> None:
    here.on("spawn", _spawn)
    here.on("stop_procs", _stop)
    here.on("kill_procs", _kill)
    here.on("rename_procs", _rename)
    here.on("ready", lambda _client, _body: None)
    here.on("host", _attached)
    here.on("doing", _doing)
    here.on_link_lost(_client_lost)
    here.on_stalled(_stalled)


at_start(_listen)
os.register_at_fork(after_in_child=_askers.clear)
os.register_at_fork(after_in_child=_beats.clear)
