"""`Process`: what one operating system process of the runtime has once, from start to end."""

from __future__ import annotations

import os
from _thread import allocate_lock, get_ident

from monarch import config
from monarch._actor.control import Control, report
from monarch._actor.future import Done, Pending, ending, seconds
from monarch._actor.pickling import loads, pack
from monarch._actor.replies import FAILED, OK
from monarch._link.address import of_proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread
    from typing import Any

    from monarch._actor.future import Future
    from monarch._core import Engine, Inbox, Worker
    from monarch._link.gate import Gate

__all__ = [
    "PeerGoneError",
    "Process",
    "at_start",
    "origin",
    "process",
    "running_process",
    "shutdown_context",
    "start_proc",
]

_JOIN_S = 1.0
_WORKERS = 4
"""Threads for plain actors; those that are stuck in an endpoint are relieved by more."""


class PeerGoneError(ConnectionError):
    """A process that was asked is gone; `fate` is the MeshFailure or the error that tells how."""

    def __init__(self, peer: int, fate: object) -> None:
        super().__init__(f"process {peer:x} is gone")
        self.fate = fate


class Process(Control):
    """What a process has of the runtime.

    Attributes:
        engine: what sends, receives and hands out messages.
        id: the proc id; random, not zero, never used again.
        address: where peers dial this process.
        parent: the proc that started this one; None in the program itself.
        addresses: where to dial other procs, where that does not follow from their id.
        gate: what listens and dials for it.
        patience: for how many seconds the processes it started may end by themselves when it shuts
            down; None as at exit.

    """

    def __init__(self, engine: Engine, parent: int | None) -> None:
        super().__init__(engine)
        self.address = of_proc(self.id)
        self.parent = parent
        self.addresses: dict[int, str] = {}
        self.gate: Gate | None = None
        self.patience: float | None = None
        self._asked: dict[int, tuple[int, Inbox]] = {}
        self._at_exit: list[Callable[[], object]] = []
        self._threads: list[Thread] = []
        self.on_dial(self._no_links)
        self.on_worker(self._start_worker)
        self.on_returned(self._returned)
        self.on("undelivered", self._undelivered)

    def tell(self, peer: int, kind: str, body: object) -> None:
        """Send to the control thread of a process, in order with calls; no answer is wanted."""
        self.engine.tell(peer, pack((kind, 0, body)))

    def ask(self, peer: int, kind: str, body: object, timeout: float | None = 30.0) -> Any:
        """What a process's handler for this kind answers.

        Raises:
            TimeoutError: it did not within `timeout` seconds.
            PeerGoneError: the process is gone.
            Exception: whatever the handler raised.

        """
        if get_ident() == self._control_ident:
            raise RuntimeError(f"ask({kind!r}) in the control thread would wait for itself")
        return self.asking(peer, kind, body).get(timeout)

    def asking(self, peer: int, kind: str, body: object) -> Future[Any]:
        """As `ask`, as a future."""
        inbox = self.engine.open_inbox(True)
        self._asked[inbox.id] = (peer, inbox)

        def settle(inbox: Inbox) -> Any:
            self._asked.pop(inbox.id, None)
            _rank, status, data, _buffers = inbox.get(0)
            if status == OK:
                return loads(data)
            told = loads(data)
            raise PeerGoneError(peer, told) if status == FAILED else told

        self._send_question(peer, kind, inbox.id, body)
        return Pending(inbox, 1, settle, f"{kind!r} asked of process {peer:x}")

    def ask_briefly(self, peer: int, kind: str, body: object, timeout: float) -> Any:
        """What a process's handler answers; None where it does not within `timeout` seconds.

        For what its control thread knows by heart: an event loop may wait for it, too. The control
        thread itself only tells, and gets None.
        """
        if get_ident() == self._control_ident:
            self.tell(peer, kind, body)
            return None
        inbox = self.engine.open_inbox(True)
        self._asked[inbox.id] = (peer, inbox)
        self._send_question(peer, kind, inbox.id, body)
        answered = inbox.wait(1, timeout)
        self._asked.pop(inbox.id, None)
        if not answered:
            return None
        _rank, status, data, _buffers = inbox.get(0)
        return loads(data) if status == OK else None

    def add_peer(self, peer: int, address: str) -> None:
        """Dial this process at this address when something is to be sent to it."""
        self.addresses[peer] = address

    def is_far(self, peer: int) -> bool:
        """Whether the link to a process is one between hosts."""
        return self.gate is not None and self.gate.is_far(peer)

    def give_up(self, peer: int, why: str) -> None:
        """End the link to a process, as if it had ended by itself."""
        self.engine.lose_link(peer, why)

    def fail_peer(self, peer: int, payload: bytes) -> None:
        """A process is gone: what waits for it gets the payload, as does what is sent later."""
        self.engine.fail_peer(peer, payload)
        if self.gate is not None:
            self.gate.forget(peer)
        for key, (asked, _inbox) in list(self._asked.items()):
            if asked == peer:
                self._fail_question(key, payload)

    def _send_question(self, peer: int, kind: str, key: int, body: object) -> None:
        failure = self.engine.tell(peer, pack((kind, key, body)))
        if failure is not None:
            self._fail_question(key, failure)

    def _fail_question(self, key: int, payload: bytes) -> None:
        if self._asked.pop(key, None) is not None:
            self.engine.post(self.id, key, 0, FAILED, payload, None)

    def _no_links(self, peer: int) -> None:
        text = f"process {peer:x} cannot be reached: this process makes no links"
        self.fail_peer(peer, pack(ConnectionError(text)))

    def _start_worker(self, worker: Worker) -> None:
        from monarch._actor.dispatch import start_worker  # noqa: PLC0415 - above this module

        start_worker(self, worker)

    def _returned(self, *event: Any) -> None:
        from monarch._actor import undelivered  # noqa: PLC0415 - rarely

        undelivered.returned(self, *event)

    def _undelivered(self, _peer: int, body: tuple[int, Any]) -> None:
        from monarch._actor import undelivered  # noqa: PLC0415 - rarely

        undelivered.hand_back(self, *body)

    # Threads and the end.

    def start_thread(self, run: Callable[[], object], name: str) -> None:
        """Run a function in a thread that the end of the process waits for, if it is quick."""
        import threading  # noqa: PLC0415 - a child with one actor needs only the control thread

        thread = threading.Thread(target=run, name=name, daemon=True)
        with self._lock:
            self._threads = [old for old in self._threads if old.is_alive()]
            self._threads.append(thread)
        thread.start()

    def at_exit(self, function: Callable[[], object]) -> None:
        """Call `function()` when the process shuts down, last in first out, engine still up."""
        self._at_exit.append(function)

    def shutdown(self) -> None:
        """End what the process has of the runtime: nothing of it runs afterwards. Repeatable."""
        with self._lock:
            if self.stopped:
                return
            self.stopped = True
        while self._at_exit:
            function = self._at_exit.pop()
            try:
                function()
            except Exception as error:  # noqa: BLE001 - the others have to run too
                report(error, "at exit")
        self.engine.stop()
        own = get_ident()
        from time import monotonic  # noqa: PLC0415 - only at the end

        end = monotonic() + _JOIN_S
        for thread in self._threads:
            if thread.ident not in {None, own}:  # at the interpreter's end none begins any more
                thread.join(max(end - monotonic(), 0.0))

    def leave(self) -> None:
        """Forget all of it, in a forked child: it is the parent's."""
        from monarch._core import leave_connections  # noqa: PLC0415 - it is loaded

        self.stopped = True
        self._at_exit.clear()
        if self.gate is not None:
            self.gate.leave()
        leave_connections()


def process() -> Process:
    """What this process has of the runtime; a program's is made on first use."""
    return _process if _process is not None else _make(None, None)


def running_process() -> Process | None:
    """As `process`, None where there is none yet."""
    return _process


def start_program(proc: int | None) -> Process:
    """Begin the runtime in a program that is to have this proc id; None for any.

    Raises:
        RuntimeError: it has begun already.

    """
    if _process is not None:
        raise RuntimeError("the runtime is in use already in this process")
    return _make(proc, None)


def start_proc(proc: int, parent: int, fd: int | None) -> Process:
    """Begin the runtime in a child process, whose link to its parent is the descriptor.

    With None the caller adds the link later: until then no message is taken.
    """
    made = _make(proc, parent)
    if fd is not None:
        made.engine.main_worker()  # before there are messages: actors are to live here
        made.engine.add_link(parent, fd)
    return made


def shutdown_context(host_timeout: float | None = None) -> Future[None]:
    """End what this program has of the runtime, its meshes included. Repeatable; also at exit.

    In a process that another one started, as in an endpoint, it does nothing.

    Args:
        host_timeout: for how many seconds the processes that it started may end by themselves
            before they are killed; by default as long as at exit.

    Raises:
        ValueError: the timeout is negative, not finite or no number. Nothing is ended then.

    """
    patience = None if host_timeout is None else seconds(host_timeout)
    if host_timeout is not None and patience is None:
        raise ValueError(f"host_timeout is a finite number of seconds, not {host_timeout!r}")
    if _process is not None and _process.parent is None:
        _process.patience = patience
        _process.shutdown()
    return Done(None)


def at_start(function: Callable[[Process], object]) -> None:
    """Call `function(process)` when this process's part is made; at once if it is there."""
    _at_start.append(function)
    if _process is not None:
        function(_process)


_process: Process | None = None
_at_start: list[Callable[[Process], object]] = []
_lock = allocate_lock()
_forked: list[Process] = []
_origin = 0, 0


def origin() -> tuple[int, int]:
    """Where this process is a fork of one that used the runtime: that one's id, and its pid."""
    return _origin


def _make(proc: int | None, parent: int | None) -> Process:
    global _process  # noqa: PLW0603 - the one there is
    with _lock:
        if _process is not None:
            return _process
        from monarch._core import Engine  # noqa: PLC0415 - native code loads on first use

        if proc is None:
            proc = int.from_bytes(os.urandom(8), "little") | 1
        engine = Engine(
            proc,
            workers=_WORKERS,
            heartbeat=config.value("heartbeat_interval"),
            misses=config.value("heartbeat_misses"),
            fan_out=config.value("max_cast_dimension_size"),
        )
        made = Process(engine, parent)
        _process = made
    import atexit  # noqa: PLC0415 - once

    from monarch._actor import dispatch, links  # noqa: PLC0415 - they are above this module

    made.on_cancel(dispatch.cancel)
    made.gate = links.begin(made)
    for function in _at_start:
        function(made)
    made.start_thread(made.run_control, "monarch-control")
    atexit.register(_exit, made)
    return made


def _exit(made: Process) -> None:
    ending.append(get_ident())
    _hush()
    made.shutdown()


def _hush() -> None:
    """Print no traceback of daemon threads from which the end takes what they call or wait for."""
    import threading  # noqa: PLC0415 - there are threads

    from monarch.errors import StoppedError, SupervisionError  # noqa: PLC0415 - only at the end

    before = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if not isinstance(args.exc_value, (SupervisionError, StoppedError, ConnectionError)):
            before(args)

    threading.excepthook = hook


def _after_fork() -> None:
    """A forked child has none of its parent's threads: it begins anew, and leaves these alone."""
    global _process, _lock, _origin  # noqa: PLW0603
    _lock = allocate_lock()
    if _process is not None:
        from monarch._actor import cancel, cell, deadlines, waiting  # noqa: PLC0415 - as above

        cell.cells.clear()
        cancel.leave()
        waiting.loop_workers.clear()
        deadlines.renew()
        _process.leave()
        _forked.append(_process)
        _origin = _process.id, os.getppid()
        _process = None


os.register_at_fork(after_in_child=_after_fork)
