"""The parent's side: processes are asked for here, and what becomes of them is told here."""

from __future__ import annotations

import _thread
import os
import select
import time

from monarch._proc import launch
from monarch._proc.boards import Boards
from monarch._proc.family import kill_descendants
from monarch._proc.messages import MOST_DESCRIPTORS, Messages, close_all
from monarch._proc.roll import Roll
from monarch._proc.spec import ExitReport, ProcSpec, ended
from monarch._proc.state import is_stopped, reap
from monarch._proc.surroundings import modules, surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from monarch._proc.boards import Running

_BATCH = min(64, MOST_DESCRIPTORS)
_LOOK_MS = 500  # that the zygote takes nothing, after which it is looked whether it is stopped


class Spawner:
    """Starts processes through a zygote of this process's own, made on first use.

    `add_link(proc, fd)` takes over this side's end of the link to each new process. `on_started`
    gets (process, pid), `on_exit` an `ExitReport`, `on_log` (process, 1 or 2, lines); they are
    called by whoever calls `receive`. `on_spawn` gets the specs before they are asked for.
    `watch(fd)` is called with the descriptor that tells when to call `receive`, until
    `unwatch(fd)`; without it, only `wait` does. `secret` gives a descriptor to read the cluster
    secret from. `settings()` gives the zygote's: `preload`, `shared` and `later` (modules to import
    before the first process, before several start at once, and when idle), `capture` (False:
    processes write to this process's own output themselves), `prefix` (False: lines without name
    and rank), `devices` (False: none are given out), `body` (what a process runs) and `parent`
    (this process's proc id).
    """

    def __init__(
        self,
        add_link: Callable[[int, int], None],
        *,
        on_started: Callable[[int, int], None] | None = None,
        on_exit: Callable[[ExitReport], None] | None = None,
        on_log: Callable[[int, int, bytes], None] | None = None,
        on_spawn: Callable[[Sequence[ProcSpec]], None] | None = None,
        watch: Callable[[int], object] | None = None,
        unwatch: Callable[[int], object] | None = None,
        secret: Callable[[], int] | None = None,
        settings: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self._add_link = add_link
        self._on_started = on_started
        self._on_exit = on_exit
        self._on_log = on_log
        self._on_spawn = on_spawn
        self._watch = watch
        self._unwatch = unwatch
        self._secret = secret
        self._settings = settings
        self._lock = _thread.RLock()
        self._messages: Messages | None = None
        self._zygote = 0
        self._sent: dict[str, Any] = {}
        self._variables: dict[str, str] = {}
        self._mark = ""
        self._roll = Roll()
        self._boards = Boards()
        self.quiet = False  # at the program's end nobody asked for what is left to be named
        os.register_at_fork(after_in_child=self._forget)

    @property
    def zygote(self) -> int:
        """The zygote's pid, 0 while there is none."""
        return self._zygote

    def fileno(self) -> int:
        """The descriptor that is readable when `receive` has something; -1 without a zygote."""
        return -1 if self._messages is None else self._messages.fileno()

    def pid(self, proc: int) -> int | None:
        """The pid of a process that has started and not been reported as ended."""
        return self._roll.pid(proc)

    def running(self, proc: int) -> list[Running]:
        """What a process is handling, the oldest first; when its end is reported, what it was."""
        return self._boards.read(proc)

    def lives(self, proc: int) -> bool:
        """Whether a process was asked for and its end has not been reported."""
        return proc in self._roll

    def told(self, proc: int) -> bool:
        """Whether a process was told to end, and its end has not been reported."""
        return self._roll.told(proc)

    def live(self) -> list[int]:
        """Processes asked for whose end has not been reported."""
        return list(self._roll)

    def live_together(self) -> list[list[int]]:
        """The same, those that were asked for at once together, in the order of asking."""
        with self._lock:
            return self._roll.together()

    def warm_up(self) -> None:
        """Let the zygote start by now, so that the first processes need not wait for it."""
        with self._lock:
            if self._messages is None:
                self._ready()

    def spawn(self, specs: Sequence[ProcSpec]) -> None:
        """Ask for processes, without waiting for them.

        Raises:
            OSError: this process has no descriptors left for their links; none was started.
            RuntimeError: no interpreter can be started from here.

        """
        for spec in specs:
            if spec.bind:
                from monarch._proc import binding  # noqa: PLC0415 - few are bound

                binding.check(spec.bind)
        pairs = launch.pairs(len(specs))
        self._notice_end()
        with self._lock:
            try:
                messages = self._ready()
            except (OSError, RuntimeError):
                close_all(fd for pair in pairs for fd in pair)
                raise
            if self._on_spawn is not None:
                self._on_spawn(specs)
            self._roll.ask(specs)
            for first in range(0, len(specs), _BATCH):
                batch = specs[first : first + _BATCH]
                theirs = []
                for spec, (ours, other) in zip(batch, pairs[first:], strict=False):
                    spec.board = self._boards.take(spec.id)
                    self._add_link(spec.id, ours)
                    theirs.append(other)
                self._send(messages, ("spawn", [spec.values() for spec in batch]), theirs)

    def stop(self, procs: Iterable[int], timeout: float) -> None:
        """Expect these processes to end, which they have been asked to.

        Those that are left shortly before `timeout` seconds are over get SIGTERM, and at the limit
        their groups get SIGKILL.
        """
        with self._lock:
            found = self._roll.stop(procs, timeout)
            if found and self._messages is not None:
                self._send(self._messages, ("stop", found, timeout))

    def kill(self, procs: Iterable[int], *, expected: bool = True) -> None:
        """Kill these processes' groups now."""
        with self._lock:
            found = self._roll.expect(procs) if expected else self._roll.surprise(procs)
            if found and self._messages is not None:
                self._send(self._messages, ("kill", found))

    def held_up(self, proc: int) -> bool:
        """Whether a process cannot start since somebody has stopped the zygote.

        Then it counts as ended, and that is told: should it start after all, it finds no link.
        """
        with self._lock:
            zygote = self._zygote
            if not self._roll.waits(proc) or not zygote or not is_stopped(zygote):
                return False
            reason = f"its zygote (pid {zygote}) is stopped; kill -CONT {zygote} lets it go on"
            calls = self._end(ExitReport(proc, 0, time=time.time(), reason=reason))
        for call in calls:
            call()
        return True

    def rename(self, proc: int, label: str) -> None:
        """Put another label before the lines of a process."""
        with self._lock:
            if proc in self._roll and self._messages is not None:
                self._send(self._messages, ("rename", proc, label))

    def forward(self, procs: Iterable[int], *, on: bool) -> None:
        """Get the lines of these processes by `on_log`, in place of this process's output."""
        with self._lock:
            if self._messages is not None:
                self._send(self._messages, ("forward", list(procs), on))

    def receive(self) -> None:
        """Take what the zygote has reported, and pass it on. Does not block."""
        with self._lock:
            messages = self._messages
            if messages is None:
                return
            if messages.queued:
                self._send_rest(messages)
            arrived, ended = messages.receive()
            calls = [call for message, _ in arrived for call in self._take(*message)]
            if ended:
                calls += self._lose_zygote()
        for call in calls:
            call()

    def wait(self, procs: Iterable[int], timeout: float) -> list[int]:
        """Wait until these processes have ended; those that have not after `timeout` seconds."""
        end = time.monotonic() + timeout
        wanted = set(procs)
        while True:
            self.receive()
            left = [proc for proc in wanted if proc in self._roll]
            remaining = end - time.monotonic()
            if not left or remaining <= 0:
                return left
            messages = self._messages
            more = select.POLLOUT if messages is not None and messages.queued else 0
            poll = select.poll()
            poll.register(self.fileno(), select.POLLIN | more)
            poll.poll(min(remaining * 1000 + 1, 20 if self._watch else 1000))

    def close(self, timeout: float = 5.0) -> None:
        """End the zygote, which kills every process that is left, and reap it."""
        with self._lock:
            messages, zygote = self._messages, self._zygote
            self._messages, self._zygote = None, 0
            self._roll.clear()
            self._boards.close()
        if messages is None:
            return
        self._close(messages)
        reap(zygote, timeout)

    # the zygote

    def _notice_end(self) -> None:
        """Report a zygote that was killed now, so that another takes its place."""
        fd = self.fileno()
        if fd >= 0:
            poll = select.poll()
            poll.register(fd, 0)  # its end is told unasked
            if poll.poll(0):
                self.receive()

    def _ready(self) -> Messages:
        """The socket to a zygote that knows this process's present settings."""
        settings: dict[str, Any] = {}
        secret: list[int] = []
        if self._messages is None:
            boards: list[int] = []
            try:  # what can be refused comes first: no zygote is kept that was told only half
                if self._secret is not None:
                    secret.append(self._secret())
                if (shared := self._boards.fileno()) >= 0:
                    boards.append(os.dup(shared))
                self._messages = self._start()
            except (OSError, RuntimeError):
                close_all((*secret, *boards))
                raise
            settings["modules"] = modules()  # a zygote that began ahead knows of fewer
            if boards:
                self._send(self._messages, ("boards",), boards)
            if self._watch is not None:
                self._watch(self._messages.fileno())
        for name, value in {**surroundings(), **self._settings()}.items():
            if self._sent.get(name) != value:
                self._sent[name] = settings[name] = value
        variables = dict(os.environ)
        if variables != self._variables:
            gone = {name: None for name in self._variables if name not in variables}
            changed = {k: v for k, v in variables.items() if self._variables.get(k) != v}
            settings["variables"] = {**changed, **gone}
            self._variables = variables
        if settings:
            self._send(self._messages, ("setup", settings), secret)
        return self._messages

    def _start(self) -> Messages:
        found = launch.take()
        self._zygote, self._variables, self._mark = found.pid, found.variables, found.mark
        self._sent = found.told
        return found.messages

    def _send(self, messages: Messages, message: tuple[Any, ...], fds: Sequence[int] = ()) -> None:
        try:
            messages.send(message, fds)
            while messages.queued:
                poll = select.poll()
                poll.register(messages.fileno(), select.POLLOUT)
                if not poll.poll(_LOOK_MS) and is_stopped(self._zygote):
                    return  # it gets the rest with what comes next, if somebody lets it go on
                messages.flush()
        except BrokenPipeError:
            pass  # its end is reported by `receive`, for every process of it

    def _send_rest(self, messages: Messages) -> None:
        """Go on with what a zygote that was stopped has not taken."""
        try:
            messages.flush()
        except BrokenPipeError:
            pass  # as above

    def _lose_zygote(self) -> list[Callable[[], None]]:
        """The zygote ended by itself: so have all its processes, by their death signal."""
        assert self._messages is not None  # noqa: S101 - the caller's condition
        zygote = self._zygote
        self._close(self._messages)
        self._messages, self._zygote = None, 0
        how = f"{ended(reap(zygote, 0.2))}; another starts with the next process"
        calls: list[Callable[[], None]] = []
        kill_descendants(self._mark)
        for proc in self._roll:
            pid = self._roll.pid(proc) or 0
            report = ExitReport(
                proc,
                pid,
                signal=9 if pid else None,
                time=time.time(),
                reason=f"its zygote (pid {zygote}) {how}",
                expected=self._roll.was_told(proc, time.monotonic()),
            )
            calls += self._end(report)
        return calls

    def _close(self, messages: Messages) -> None:
        if self._unwatch is not None:
            self._unwatch(messages.fileno())
        messages.close()

    def _forget(self) -> None:
        """In a fork of this process: the zygote is the parent's, and must not be kept alive."""
        self._lock = _thread.RLock()
        if self._messages is not None:
            self._messages.close()
        self._messages, self._zygote = None, 0
        self._roll, self._sent = Roll(), {}
        self._boards.forget()

    # reports

    def _take(self, kind: str, *arguments: Any) -> list[Callable[[], None]]:
        if kind == "started":
            return [call for proc, pid in arguments[0] for call in self._note_start(proc, pid)]
        if kind == "exit":
            proc, pid, code, signal, seconds, shown, moment, forced, reason = arguments
            if forced:
                reason = f"still ran {self._roll.limit(proc):g} s after it was told to stop"
                label = self._roll.label(proc)
                if label is not None and not self.quiet:
                    note(f"monarch: [{label}] (pid {pid}) {reason}; it was killed")
            report = ExitReport(
                proc,
                pid,
                code,
                signal,
                seconds,
                time=shown,
                reason=reason,
                expected=self._roll.was_told(proc, moment),
                forced=forced,
            )
            return self._end(report)
        if kind == "failed":
            return self._end(ExitReport(arguments[0], 0, time=time.time(), reason=arguments[1]))
        if kind == "log":
            handler = self._on_log
            return [] if handler is None else [lambda: handler(*arguments)]
        if kind == "note":
            note(arguments[0])
        return []

    def _note_start(self, proc: int, pid: int) -> list[Callable[[], None]]:
        self._roll.started(proc, pid)
        handler = self._on_started
        return [] if handler is None else [lambda: handler(proc, pid)]

    def _end(self, report: ExitReport) -> list[Callable[[], None]]:
        self._roll.ended(report.proc)
        handler = self._on_exit
        calls = [] if handler is None else [lambda: handler(report)]
        return [*calls, lambda: self._boards.give_back(report.proc)]


def note(text: str) -> None:
    """A line on standard error, whole."""
    try:
        os.write(2, text.encode() + b"\n")
    except OSError:
        pass
