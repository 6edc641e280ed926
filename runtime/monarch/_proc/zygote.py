"""The zygote: a process with one thread that has imported the runtime and forks processes.

A parent starts it by exec of a fresh interpreter (`python -m monarch._proc.zygote`) with a socket
on descriptor CONTROL. All it has to know comes over that socket, the cluster secret by a descriptor
of its own. When the socket ends, for whatever reason, it kills everything it ever started.
"""

from __future__ import annotations

import _signal
import _socket
import gc
import os
import select
import sys
import time

from monarch import _core
from monarch._link import secret
from monarch._proc import child, start
from monarch._proc.family import Family, Member
from monarch._proc.messages import Messages
from monarch._proc.relay import Relay
from monarch._proc.spec import ProcSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CONTROL = 3  # the descriptor of the control socket
_TERMINATE_BEFORE = 1.0  # seconds between SIGTERM and SIGKILL, where the limit leaves room
_LAST_WORDS = 1.0  # seconds that a stuck reader of our output is waited for at the end
_IDLE_MS = 300  # without anything to do, after which modules for later are imported
_GONE = 5.0  # seconds to wait for killed processes at the end


class _Ended(Exception):  # noqa: N818 - no error
    """The parent closed its end."""


class Zygote:
    """The loop of the zygote: orders from the parent, ends of children, lines they print."""

    def __init__(self, control: Messages, wakeup: int) -> None:
        self._control = control
        self._wakeup = wakeup
        self._family = Family()
        self._relay = Relay(self._forward)
        self._settings: dict[str, Any] = {"zygote": os.getpid()}
        self._reasons, self._reasons_to = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_DGRAM)
        self._reasons.setblocking(False)
        self._last_words: dict[int, str] = {}
        self._preloaded: set[str] = set()
        self._shared: list[str] = []  # modules to import before several processes start at once
        self._idle: list[str] = []  # when there is nothing to do; after the shared ones
        self._asked: list[str] = []  # modules that the program names
        self._warned = False
        self._idles = False
        self._ended = False
        self._orders: dict[str, Callable[..., None]] = {
            "boards": self._take_boards,
            "setup": self._setup,
            "spawn": self._spawn,
            "stop": self._stop,
            "kill": self._kill,
            "forward": self._set_forwarding,
            "rename": self._rename,
        }

    def run(self) -> None:
        """Serve until the parent's end of the socket is closed, then kill and reap everybody."""
        try:
            while True:
                self._step()
        except _Ended:
            pass
        self._family.kill_all(_GONE)
        for proc in self._relay.processes():
            self._relay.finish(proc)
        self._relay.drain(_LAST_WORDS)

    def _step(self) -> None:
        poll = select.poll()
        control = self._control.fileno()
        poll.register(control, select.POLLIN | (select.POLLOUT if self._control.queued else 0))
        poll.register(self._wakeup, select.POLLIN)
        for fd in self._relay.readable():
            poll.register(fd, select.POLLIN)
        for fd in self._relay.writable():
            poll.register(fd, select.POLLOUT)
        left = self._family.due(time.monotonic())
        wait = None if left is None else int(left * 1000) + 1
        idle = self._shared or self._idle
        if idle and (wait is None or wait > _IDLE_MS):
            wait = _IDLE_MS
        ready = poll.poll(wait)
        if not ready and idle:
            self._import_meanwhile(idle.pop(0))
            return
        died = False
        for fd, _ in ready:
            if fd == control:
                self._obey()
            elif fd == self._wakeup:
                died = True
            else:
                self._relay.ready(fd)
        if died:
            os.read(self._wakeup, 4096)
            self._ended = False
            self._reap()

    def child_ended(self, _number: int, _frame: object) -> None:
        """Wake the loop; where that imports for later, which takes its time, report at once."""
        self._ended = True
        self._report_ended()

    def _report_ended(self) -> None:
        while self._idles and self._ended:
            self._idles = self._ended = False  # who ends meanwhile begins no report within this one
            try:
                self._reap()
            except _Ended:
                pass  # `_step` finds out for itself; the module that is imported must not
            finally:
                self._idles = True

    def _obey(self) -> None:
        messages, ended = self._control.receive()
        for message, fds in messages:
            kind, *arguments = message
            self._orders[kind](*arguments, fds=fds)
        if ended:
            raise _Ended
        if self._control.queued:
            self._control.flush()

    def _tell(self, *message: Any) -> None:
        try:
            self._control.send(message)
        except BrokenPipeError:
            raise _Ended from None

    # orders

    def _take_boards(self, fds: list[int]) -> None:
        """The pages on which processes say what they do."""
        if fds:
            self._settings["boards"] = fds[0]

    def _setup(self, settings: dict[str, Any], fds: list[int]) -> None:
        """Take over changed settings: path, cwd, argv, variables, lists of modules, capture."""
        for fd in fds:
            secret.adopt(fd)
            self._settings["secret"] = True
        self._settings.update(settings)
        if "path" in settings:
            sys.path[:] = settings["path"]
        if "argv" in settings:
            sys.argv[:] = settings["argv"]
        for name, value in settings.get("variables", {}).items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if "cwd" in settings:
            try:
                os.chdir(settings["cwd"])
            except OSError as error:
                self._tell("note", f"monarch: processes start in {os.getcwd()}: {error}")
        self._asked += settings.get("preload", ())
        for name in (*settings.get("modules", ()), *settings.get("preload", ())):
            self._import(name)
        for names, into in (("shared", self._shared), ("later", self._idle)):
            into += [name for name in settings.get(names, ()) if name not in sys.modules]

    def _import(self, name: str) -> None:
        if note := self._imported(name):
            self._tell("note", note)

    def _import_meanwhile(self, name: str) -> None:
        """Import while there is nothing else to do but to report deaths."""
        self._idles = True
        self._report_ended()
        note = self._imported(name)
        self._idles = False
        if note:
            self._tell("note", note)

    def _imported(self, name: str) -> str:
        """Import once; why that failed, if it did."""
        if name in self._preloaded:
            return ""
        self._preloaded.add(name)
        try:
            __import__(name)
        except BaseException as error:  # noqa: BLE001 - the user's module may do anything
            return f"monarch: cannot preload {name}: {type(error).__name__}: {error}"
        return ""

    def _spawn(self, specs: list[tuple[Any, ...]], fds: list[int]) -> None:
        while self._shared and len(specs) > 1:
            self._import(self._shared.pop(0))
        gc.freeze()
        threads = start.threads_at_a_fork()
        if threads > 1 and not self._warned:
            self._warned = True
            self._tell(
                "note",
                f"monarch: a preloaded module has started {threads - 1} threads, so processes "
                f"cannot be forked and each starts a fresh interpreter, which is slower "
                f"(preload_modules: {', '.join(self._asked) or 'none'})",
            )
        started = []
        for values in specs:
            spec = ProcSpec.from_values(values)
            link = fds.pop(0) if fds else None
            if link is None:
                self._tell("failed", spec.id, _room("the process's link could not be received"))
                continue
            try:
                pid = self._start(spec, link, fds if threads == 1 else None)
            except OSError as error:
                self._tell("failed", spec.id, _room(str(error)))
            else:
                self._family.add(spec.id, pid, spec.label)
                started.append((spec.id, pid))
            finally:
                os.close(link)
        if started:
            self._tell("started", started)

    def _start(self, spec: ProcSpec, link: int, others: list[int] | None) -> int:
        """Start a process, by fork where it is told which `others` to close; its pid."""
        stdio = None
        if self._settings.get("capture", True):
            label = spec.label if self._settings.get("prefix", True) else ""
            stdio = self._relay.pipes(spec.id, label)
        try:
            if others is None:
                return start.execute(spec, link, stdio, self._settings, self._reasons_to.fileno())
            # Before the fork: in the child, newer Pythons have forgotten the wakeup descriptor.
            foreign = [*others, *self._own_descriptors()]
            pid = os.fork()
            if pid == 0:
                reasons = self._reasons_to.detach()
                child.forked(spec, link, stdio, self._settings, reasons, foreign)
        except OSError:
            self._relay.finish(spec.id)
            raise
        else:
            return pid
        finally:
            for fd in stdio or ():
                os.close(fd)

    def _own_descriptors(self) -> list[int]:
        return [
            self._control.fileno(),
            self._wakeup,
            _wakeup_writer(),
            self._reasons.fileno(),
            *self._relay.descriptors(),
        ]

    def _stop(self, procs: list[int], timeout: float, fds: list[int]) -> None:  # noqa: ARG002
        """Members asked to end: SIGTERM shortly before `timeout` seconds are over, then SIGKILL."""
        now = time.monotonic()
        for member in self._family.find(procs):
            member.kill_at = now + timeout
            member.terminate_at = now + timeout - min(_TERMINATE_BEFORE, timeout / 5)

    def _kill(self, procs: list[int], fds: list[int]) -> None:  # noqa: ARG002
        for member in self._family.find(procs):
            member.signal(_signal.SIGKILL)

    def _rename(self, proc: int, label: str, fds: list[int]) -> None:  # noqa: ARG002
        for member in self._family.find([proc]):
            member.label = label
        self._relay.rename(proc, label if self._settings.get("prefix", True) else "")

    def _set_forwarding(self, procs: list[int], on: bool, fds: list[int]) -> None:  # noqa: ARG002
        if on:
            self._relay.forwarded.update(procs)
        else:
            self._relay.forwarded.difference_update(procs)

    # reports

    def _reap(self) -> None:
        ended = self._family.reap()
        if ended:
            self._read_reasons()
        for member, status in ended:
            self._relay.finish(member.id)
            self._report(member, status, self._last_words.pop(member.id, ""))
        self._family.kill_orphans()  # takes a look at every process, so it comes last

    def _read_reasons(self) -> None:
        while True:
            try:
                data = self._reasons.recv(8 + start.LONGEST_REASON)
            except OSError:
                return
            proc = int.from_bytes(data[:8], "little")
            self._last_words[proc] = data[8:].decode("utf-8", "replace")

    def _report(self, member: Member, status: int, reason: str) -> None:
        signaled = os.WIFSIGNALED(status)
        ended = time.monotonic()
        self._tell(
            "exit",
            member.id,
            member.pid,
            None if signaled else os.WEXITSTATUS(status),
            os.WTERMSIG(status) if signaled else None,
            ended - member.started,
            time.time(),
            ended,
            member.forced,
            reason,
        )

    def _forward(self, proc: int, stream: int, lines: bytes) -> None:
        self._tell("log", proc, stream, lines)


def _room(text: str) -> str:
    import resource  # noqa: PLC0415 - only on the way out

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"{text} (the zygote may have {soft} descriptors open: RLIMIT_NOFILE, ulimit -n)"


def _wakeup_writer() -> int:
    fd: int = _signal.set_wakeup_fd(-1)
    _signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
    return fd


def main() -> None:
    """Run the zygote on the descriptors that it inherited; those it has no use for are closed."""
    gc.disable()  # what is imported stays, and looking through it would be in vain
    _open_standard_streams()
    _core.close_range(CONTROL + 1, 0x7FFFFFFF)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    _signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        _core.become_subreaper()
        _core.set_parent_death_signal(_signal.SIGCONT)  # one that is stopped has to see it too
    except OSError:
        pass  # macOS: processes that leave their group are not followed
    os.set_inheritable(CONTROL, False)
    zygote = Zygote(Messages(_socket.socket(fileno=CONTROL)), reading)
    _signal.signal(_signal.SIGCHLD, zygote.child_ended)
    zygote.run()
    os._exit(0)


def _open_standard_streams() -> None:
    """A parent may run without some of these; a later pipe must not take their place."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    main()
