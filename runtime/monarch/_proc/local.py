"""The processes that this process starts, on its own host or by another's host agent."""

from __future__ import annotations

import os
from _thread import allocate_lock

from monarch import config
from monarch._actor.actor import Actor, needs_loop
from monarch._actor.process import process
from monarch._proc import hosts
from monarch._proc.spawner import Spawner
from monarch._proc.surroundings import standard_modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from monarch._actor.process import Process
    from monarch._proc.boards import Running
    from monarch._proc.spec import ExitReport, ProcSpec

__all__ = [
    "announce",
    "end_now",
    "held_up",
    "hurry",
    "kill",
    "listen",
    "lives",
    "note_exit",
    "note_started",
    "pid",
    "rename",
    "running",
    "spawn",
    "spawner",
    "stop",
    "told",
]

_BY_VALUE = "monarch._actor.by_value"
_LOOP = "asyncio"
_SCRIPT = ("__main__", "__mp_main__")
_LATER = (_BY_VALUE, _LOOP)  # imported when idle, where nothing shows that they are needed
_KILL_S = 2.0
_HURRIED_S = 0.2
AT_EXIT = 0.5  # seconds that processes get to end when this one does
_lock = allocate_lock()
_spawner: Spawner | None = None
_on_started: list[Callable[[int, int], object]] = []
_on_exit: list[Callable[[ExitReport], object]] = []
_on_log: list[Callable[[int, int, bytes], object]] = []
_on_spawn: list[Callable[[Sequence[ProcSpec]], object]] = []


def spawner() -> Spawner:
    """What starts processes here; its zygote is made with the first of them."""
    global _spawner  # noqa: PLW0603 - one of a process
    found = _spawner
    if found is not None:
        return found
    here = process()
    with _lock:
        if _spawner is None:
            _spawner = _made(here)
        return _spawner


def listen(
    *,
    on_started: Callable[[int, int], object] | None = None,
    on_exit: Callable[[ExitReport], object] | None = None,
    on_log: Callable[[int, int, bytes], object] | None = None,
    on_spawn: Callable[[Sequence[ProcSpec]], object] | None = None,
) -> None:
    """Call these with (process, pid), with each `ExitReport`, with (process, 1 or 2, lines).

    They run in the control thread, and for `Spawner.wait` in the thread that waits. `on_spawn` gets
    the specs of processes that are about to be asked for, in the thread that asks.
    """
    if on_started is not None:
        _on_started.append(on_started)
    if on_exit is not None:
        _on_exit.append(on_exit)
    if on_log is not None:
        _on_log.append(on_log)
    if on_spawn is not None:
        _on_spawn.append(on_spawn)


def spawn(host: int, specs: Sequence[ProcSpec]) -> None:
    """Ask for processes, without waiting for them, here or from another host's agent.

    Raises:
        OSError: this process has no descriptors left for their links; none was started.

    """
    if host == process().id:
        spawner().spawn(specs)
    else:
        hosts.spawn(host, specs)


def lives(proc: int) -> bool:
    """Whether a process was asked for by this one and its end is not known yet."""
    return (_spawner is not None and _spawner.lives(proc)) or hosts.lives(proc)


def pid(proc: int) -> int | None:
    """The pid of a process that this one asked for, as long as it runs."""
    found = None if _spawner is None else _spawner.pid(proc)
    return hosts.pid(proc) if found is None else found


def stop(procs: Iterable[int], reason: str, timeout: float) -> None:
    """Ask processes to end: their actors handle what they have been sent, and clean up.

    What is left of them after `timeout` seconds is killed. Their ends are told as any other's.
    """
    wanted = list(procs)
    hosts.stop(wanted, reason, timeout)
    found = [proc for proc in wanted if _spawner is not None and _spawner.lives(proc)]
    if not found:
        return
    here = process()
    spawner().stop(found, timeout)
    for proc in found:
        here.tell(proc, "stop", reason)


def kill(procs: Iterable[int], *, expected: bool = True) -> None:
    """Kill processes with everything they have started; their ends are told as `expected`."""
    wanted = list(procs)
    hosts.kill(wanted, expected=expected)
    if _spawner is not None:
        _spawner.kill(wanted, expected=expected)


def told(proc: int) -> bool:
    """Whether a process that this one started here was told to end; its end may not be reported."""
    return _spawner is not None and _spawner.told(proc)


def held_up(proc: int) -> bool:
    """Whether a process cannot start, by `Spawner.held_up`; its end is told then."""
    return _spawner is not None and _spawner.held_up(proc)


def rename(proc: int, label: str) -> None:
    """Put another name and rank before the lines that a process prints."""
    hosts.rename(proc, label)
    if _spawner is not None:
        _spawner.rename(proc, label)


def running(proc: int) -> list[Running]:
    """What a process is handling, the oldest first; once it has ended, what it was."""
    found = [] if _spawner is None else _spawner.running(proc)
    return found or hosts.running(proc)


def hurry() -> None:
    """Somebody waits for the end: processes get less time for theirs."""
    global AT_EXIT  # noqa: PLW0603 - one of a process
    AT_EXIT = min(AT_EXIT, _HURRIED_S)


def end_now() -> None:
    """Kill all processes that this one has started, and return when they are gone."""
    if _spawner is not None:
        _spawner.close(_KILL_S)


def announce(specs: Sequence[ProcSpec]) -> None:
    """Tell those that listen of processes that are about to be asked for elsewhere."""
    _each(_on_spawn)(specs)


def note_started(proc: int, number: int) -> None:
    """Tell those that listen of a process that has started elsewhere, with this pid."""
    _each(_on_started)(proc, number)


def note_exit(report: ExitReport) -> None:
    """Tell those that listen of a process that has ended elsewhere."""
    _each(_on_exit)(report)


def _made(here: Process) -> Spawner:
    from monarch._link import secret  # noqa: PLC0415 - only who starts processes hands it down
    from monarch._proc import logs  # noqa: PLC0415 - it imports this module, and listens

    assert logs  # noqa: S101
    made = Spawner(
        here.engine.add_link,
        on_started=_each(_on_started),
        on_exit=_each(_on_exit),
        on_log=_each(_on_log),
        on_spawn=_each(_on_spawn),
        watch=lambda fd: here.on_readable(fd, made.receive),
        unwatch=here.forget,
        secret=lambda: secret.current().hand_down(),
        settings=lambda: _settings(here),
    )
    here.at_exit(_end)
    return made


def _settings(here: Process) -> dict[str, Any]:
    named: str = config.value("preload_modules")
    wanted = dict.fromkeys(_LATER, False) | _needs()
    return {
        "parent": here.id,
        "public": "" if here.gate is None else here.gate.public,
        "gateway": "" if here.gate is None else here.gate.gateway,
        "preload": [
            *("threading", "monarch._proc.work"),
            *(name.strip() for name in named.split(",") if name.strip()),
        ],
        "shared": [*standard_modules(), *(name for name, needed in wanted.items() if needed)],
        "later": [name for name, needed in wanted.items() if not needed],
        "prefix": config.value("prefix_with_rank"),
        "capture": config.value("capture_output"),
        "devices": config.value("assign_devices"),
    }


def _needs() -> dict[str, bool]:
    """Heavier modules that processes will want, going by the classes of actors there are here."""
    found: dict[str, bool] = {}
    todo = list(Actor.__subclasses__())
    while todo:
        cls = todo.pop()
        if cls.__module__ in _SCRIPT:  # a process cannot import it: it comes by value
            found[_BY_VALUE] = True
        if needs_loop(cls):
            found[_LOOP] = True
        todo += cls.__subclasses__()
    return found


def _each(handlers: list[Callable[..., object]]) -> Callable[..., None]:
    def call(*arguments: object) -> None:
        for handler in list(handlers):
            handler(*arguments)

    return call


def _end() -> None:
    """End, with this process, those it started, the last ones first: politely at first.

    Who takes half of the time that is left does not keep those before it from being asked as well.
    """
    if _spawner is None:
        return
    from time import monotonic  # noqa: PLC0415 - once

    _spawner.quiet = True
    asked = process().patience
    patience = AT_EXIT if asked is None else asked
    limit = monotonic() + patience
    for procs in reversed(_spawner.live_together()):
        left = max(limit - monotonic(), 0.0)
        stop(procs, "the program has ended", left)
        _spawner.wait(procs, left / 2)
    _spawner.wait(_spawner.live(), patience * 2)
    _spawner.close()


def _forget() -> None:
    """In a fork of this process: the processes are the parent's."""
    global _spawner, _lock  # noqa: PLW0603 - as above
    _lock = allocate_lock()
    _spawner = None
    _on_started.clear()
    _on_exit.clear()
    _on_log.clear()
    _on_spawn.clear()


os.register_at_fork(after_in_child=_forget)
