"""Processes that this one has others start: asked for on another host, told of, and ended there."""

from __future__ import annotations

import os
from _thread import allocate_lock

from monarch._actor.process import at_start, process
from monarch._proc.tree import plant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from monarch._actor.process import Process
    from monarch._proc.boards import Running
    from monarch._proc.spec import ProcSpec

__all__ = [
    "doing",
    "host_of",
    "is_lost",
    "kill",
    "lives",
    "on_host_lost",
    "pid",
    "rename",
    "running",
    "shut_out",
    "spawn",
    "stop",
]

_lock = allocate_lock()
_hosts: dict[int, int] = {}  # by process, the one that starts it; both until its end is told
_pids: dict[int, int] = {}
_ran: dict[int, list[Running]] = {}
_lost: dict[int, list[Callable[[], object]]] = {}
_silent: dict[int, str] = {}  # by host agent that has been given up, why where that is not its end
_gone: dict[int, None] = {}  # hosts whose link has ended, the last ones
_REMEMBERED = 4096


def spawn(host: int, specs: Sequence[ProcSpec]) -> None:
    """Ask the host agent `host` for processes, without waiting for them."""
    from monarch._proc import local  # noqa: PLC0415 - it imports this module

    with _lock:
        for spec in specs:
            _hosts[spec.id] = host
    local.announce(specs)
    if host in _gone:
        why = f"its host agent, process {host:016x}, is gone"
        _end_all([spec.id for spec in specs], why, killed=False)
    else:
        process().tell(host, "spawn", [spec.values() for spec in specs])
        plant(process(), host, [spec.id for spec in specs])


def is_lost(host: int) -> bool:
    """Whether the link to a host agent has ended: what it ran is gone, and it starts nothing."""
    return host in _gone


def host_of(proc: int) -> int | None:
    """The host agent that was asked for a process, None for others and once its end is known."""
    return _hosts.get(proc)


def lives(proc: int) -> bool:
    """Whether a process was asked for elsewhere and its end is not known yet."""
    return proc in _hosts


def pid(proc: int) -> int | None:
    """The pid of a process started elsewhere, as long as it runs."""
    return _pids.get(proc)


def stop(procs: Iterable[int], reason: str, timeout: float) -> None:
    """Have processes end in order, and killed after `timeout` seconds."""
    _order("stop_procs", procs, reason, timeout)


def kill(procs: Iterable[int], *, expected: bool = True) -> None:
    """Have processes killed with everything they have started."""
    _order("kill_procs", procs, expected)


def shut_out(gone: Sequence[int], timeout: float) -> None:
    """Have the processes on other hosts take nothing of `gone` any more, and wait until it is so.

    One that does not say so within `timeout` seconds hangs or is lost, and acts on nothing either.
    """
    from time import monotonic  # noqa: PLC0415 - only where a node is replaced

    here = process()
    end = monotonic() + timeout
    left = [proc for proc in list(_hosts) if proc not in gone and here.engine.has_link(proc)]
    for told in [here.asking(proc, "fence", list(gone)) for proc in left]:
        try:
            told.get(max(end - monotonic(), 0.0))
        except (TimeoutError, ConnectionError):
            continue


def rename(proc: int, label: str) -> None:
    """Have other words put before the lines that a process prints."""
    _order("rename_procs", [proc], label)


def running(proc: int) -> list[Running]:
    """What a process was handling when it ended; known while its end is told."""
    return _ran.get(proc, [])


def doing(procs: Iterable[int], timeout: float) -> dict[int, tuple[bool, list[Running]]]:
    """Ask the host agents of processes whether they are stopped, and what they handle.

    Processes of a host that has not answered within `timeout` seconds are left out.
    """
    from time import monotonic  # noqa: PLC0415 - rarely asked for

    from monarch._proc.boards import Running  # noqa: PLC0415 - as above

    by_host: dict[int, list[int]] = {}
    for proc in procs:
        host = _hosts.get(proc)
        if host is not None:
            by_host.setdefault(host, []).append(proc)
    found = {}
    for host, each in by_host.items():
        told = process().ask_briefly(host, "doing", each, timeout)
        now = monotonic()
        for proc, (stopped, ran) in (told or {}).items():
            running = [Running(actor, name, now - seconds) for actor, name, seconds in ran]
            found[proc] = stopped, running
    return found


def on_host_lost(host: int, handler: Callable[[], object]) -> None:
    """Call `handler()` once when the link to a host agent ends; in the control thread."""
    with _lock:
        _lost.setdefault(host, []).append(handler)


def _order(kind: str, procs: Iterable[int], *more: Any) -> None:
    by_host: dict[int, list[int]] = {}
    for proc in procs:
        host = _hosts.get(proc)
        if host is not None:
            by_host.setdefault(host, []).append(proc)
    for host, found in by_host.items():
        process().tell(host, kind, (found, *more))


def _started(_host: int, body: tuple[int, int]) -> None:
    from monarch._proc import local  # noqa: PLC0415 - it imports this module

    proc, number = body
    if proc in _hosts:
        _pids[proc] = number
        local.note_started(proc, number)


def _ended(_host: int, body: tuple[dict[str, Any], list[tuple[int, str, float]]]) -> None:
    from monarch._proc import local  # noqa: PLC0415 - it imports this module
    from monarch._proc.boards import Running  # noqa: PLC0415 - only where there are such
    from monarch._proc.spec import ExitReport  # noqa: PLC0415

    report = ExitReport(**body[0])
    with _lock:
        known = _hosts.pop(report.proc, None) is not None
        _pids.pop(report.proc, None)
    if known:
        _ran[report.proc] = [Running(*one) for one in body[1]]
        try:
            local.note_exit(report)
        finally:
            del _ran[report.proc]


def _host_lost(host: int) -> None:
    """Without their host agent, its processes have no parent, and end.

    One that is only cut off ends them itself, which nobody sees: so they are shut out everywhere.
    """
    with _lock:
        handlers = _lost.pop(host, [])
        _gone[host] = None
        while len(_gone) > _REMEMBERED:
            del _gone[next(iter(_gone))]
        gone = [proc for proc, found in _hosts.items() if found == host]
        left = [proc for proc, found in _hosts.items() if found != host]
    silent = _silent.pop(host, "")
    if gone:
        here = process()
        for proc in left:
            if here.engine.has_link(proc):
                here.tell(proc, "fence", gone)
        reason = silent or f"its host agent, process {host:016x}, is gone"
        for proc in gone:
            here.give_up(proc, reason)
        _end_all(gone, reason, killed=not silent)
    for handler in handlers:
        handler()


def _stalled(peer: int, seconds: float | None) -> None:
    """A host that does not answer is lost: whether it is or is cut off, nobody here can tell."""
    here = process()
    if seconds is not None and here.is_far(peer) and (peer in _lost or peer in _hosts.values()):
        _silent[peer] = f"its host has not answered for {seconds:.1f} s"
        here.give_up(peer, "it does not answer")


def _unheard(host: int, seconds: float) -> None:
    """A host hears nothing of this program, while the way back is open: it ends what it ran."""
    _silent[host] = f"its host has not heard this program for {seconds:.1f} s"
    process().give_up(host, "it does not hear this program")


def _fence(_peer: int, gone: list[int]) -> None:
    """Processes that have been declared dead: nothing of theirs is taken any more."""
    from monarch._actor.pickling import pack  # noqa: PLC0415 - only on the way out

    here = process()
    told = pack(ConnectionError("the process is on a host that was lost"))
    for proc in gone:
        here.fail_peer(proc, told)
    for proc in list(_hosts):
        if here.engine.has_link(proc):
            here.tell(proc, "fence", gone)


def _end_all(procs: Sequence[int], reason: str, *, killed: bool) -> None:
    from time import time  # noqa: PLC0415 - only on the way out

    for proc in procs:
        pid = _pids.get(proc, 0)
        told = {"proc": proc, "pid": pid, "time": time(), "reason": reason}
        _ended(0, ({**told, "signal": 9 if killed and pid else None}, []))


def _listen(here: Process) -> None:
    here.on("proc_started", _started)
    here.on("proc_ended", _ended)
    here.on("fence", _fence)
    here.on_link_lost(_host_lost)
    here.on("unheard", _unheard)
    here.on_stalled(_stalled)
    here.at_exit(_leave)


def _leave() -> None:
    """The program ends: what it has others run ends with it, in order as far as there is time."""
    for host in set(_hosts.values()):
        found = [proc for proc, other in _hosts.items() if other == host]
        process().tell(host, "stop_procs", (found, "the program has ended", 0.5))


def _forget() -> None:
    """In a fork of this process: what was asked for is the parent's."""
    global _lock  # noqa: PLW0603 - as above
    _lock = allocate_lock()
    _hosts.clear()
    _pids.clear()
    _lost.clear()
    _silent.clear()
    _gone.clear()


at_start(_listen)
os.register_at_fork(after_in_child=_forget)
