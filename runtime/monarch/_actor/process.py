"""`Process`: what one operating system process of the runtime has once: engine, control thread.

The control thread takes the engine's events: messages of the control plane (told and asked by
`tell` and `ask`), lost links, peers to dial, descriptors to read, workers that are wanted.
Handlers run in it and do not block.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, get_ident

from monarch import config
from monarch._actor.future import Done, Pending, ending
from monarch._actor.pickling import loads, pack
from monarch._actor.replies import ERROR, FAILED, OK
from monarch._link.address import of_proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread
    from typing import Any

    from monarch._actor.future import Future
    from monarch._core import Engine, Inbox, Request
    from monarch._link.gate import Gate

    Handler = Callable[[int, Any], object]

__all__ = [
    "Process",
    "at_start",
    "process",
    "running_process",
    "shutdown_context",
    "start_proc",
]

_JOIN_S = 1.0
_WORKERS = 4
"""Threads for plain actors; those that are stuck in an endpoint are relieved by more."""


class Process:
    """What a process has of the runtime.

    Attributes:
        engine: what sends, receives and hands out messages.
        id: the proc id; random, not zero, never used again.
        address: where peers dial this process.
        parent: the proc that started this one; None in the program itself.
        addresses: where to dial other procs, where that does not follow from their id.
        gate: what listens and dials for it.

    """

    def __init__(self, engine: Engine, parent: int | None) -> None:
        self.engine = engine
        self.id: int = engine.proc
        self.address = of_proc(self.id)
        self.parent = parent
        self.addresses: dict[int, str] = {}
        self.gate: Gate | None = None
        self.stopped = False
        self._handlers: dict[str, Handler] = {}
        self._on_link_lost: list[Callable[[int], object]] = []
        self._on_dial: Callable[[int], object] | None = None
        self._on_unanswered: Callable[[int], object] | None = None
        self._on_stalled: list[Callable[[int, float | None], object]] = []
        self._on_stuck: Callable[[int], object] | None = None
        self._on_cancel: Callable[[Request], object] | None = None
        self._on_readable: dict[int, tuple[int, Callable[[], object], bool]] = {}
        self._next_token = 1
        self._asked: dict[int, tuple[int, Inbox]] = {}
        self._at_exit: list[Callable[[], object]] = []
        self._threads: list[Thread] = []
        self._lock = allocate_lock()
        self._control_ident = 0

    # The control plane.

    def on(self, kind: str, handler: Handler) -> None:
        """Let `handler(peer, body)` have what is told or asked under this kind.

        What it returns answers an `ask`, and so does what it raises.
        """
        self._handlers[kind] = handler

    def on_link_lost(self, handler: Callable[[int], object]) -> None:
        """Call `handler(peer)` when the link to a process ends."""
        self._on_link_lost.append(handler)

    def on_stalled(self, handler: Callable[[int, float | None], object]) -> None:
        """Call `handler(peer, seconds)` when a peer misses its beats; with None when it is back."""
        self._on_stalled.append(handler)

    def on_stuck(self, handler: Callable[[int], object]) -> None:
        """Call `handler(actor)` when an actor has waited for an answer for another second."""
        self._on_stuck = handler

    def on_dial(self, handler: Callable[[int], object]) -> None:
        """Call `handler(peer)` to make a link to a process that something is to be sent to."""
        self._on_dial = handler

    def on_unanswered(self, handler: Callable[[int], object]) -> None:
        """Call `handler(peer)` when a process that is dialled does not answer at first."""
        self._on_unanswered = handler

    def unanswered(self, peer: int) -> None:
        """A process that is dialled does not answer, and may be gone; it is dialled on."""
        if self._on_unanswered is not None and not self.stopped:
            self._on_unanswered(peer)

    def on_cancel(self, handler: Callable[[Request], object]) -> None:
        """Call `handler(request)` when the caller of a running request gave it up."""
        self._on_cancel = handler

    def on_readable(self, fd: int, handler: Callable[[], object]) -> None:
        """Call `handler()` whenever the descriptor is readable, until `forget(fd)`."""
        with self._lock:
            token = self._next_token
            self._next_token += 1
            self._on_readable[token] = (fd, handler, False)
        self.engine.watch(fd, token)

    def once_readable(self, fd: int, handler: Callable[[], object]) -> None:
        """As `on_readable`, for the next time only."""
        with self._lock:
            token = self._next_token
            self._next_token += 1
            self._on_readable[token] = (fd, handler, True)
        self.engine.watch(fd, token)

    def forget(self, fd: int) -> None:
        """End what `on_readable` or `once_readable` began."""
        with self._lock:
            for token, (known, _handler, _once) in list(self._on_readable.items()):
                if known == fd:
                    del self._on_readable[token]
        self.engine.unwatch(fd)

    def tell(self, peer: int, kind: str, body: object) -> None:
        """Send to the control thread of a process, in order with calls; no answer is wanted."""
        self.engine.tell(peer, pack((kind, 0, body)))

    def ask(self, peer: int, kind: str, body: object, timeout: float | None = 30.0) -> Any:
        """What a process's handler for this kind answers.

        Raises:
            TimeoutError: it did not within `timeout` seconds.
            ConnectionError: the process is gone.
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
            error = loads(data)
            raise error if isinstance(error, BaseException) else ConnectionError(str(error))

        self.engine.tell(peer, pack((kind, inbox.id, body)))
        return Pending(inbox, 1, settle, f"{kind!r} asked of process {peer:x}")

    def add_peer(self, peer: int, address: str) -> None:
        """Dial this process at this address when something is to be sent to it."""
        self.addresses[peer] = address

    def fail_peer(self, peer: int, payload: bytes) -> None:
        """A process is gone: what waits for it gets the payload, as does what is sent later."""
        self.engine.fail_peer(peer, payload)
        if self.gate is not None:
            self.gate.forget(peer)
        text = pack(ConnectionError(f"process {peer:x} is gone"))
        for key, (asked, _inbox) in list(self._asked.items()):
            if asked == peer and self._asked.pop(key, None) is not None:
                self.engine.post(self.id, key, 0, FAILED, text, None)

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
                _report(error, "at exit")
        self.engine.stop()
        own = get_ident()
        from time import monotonic  # noqa: PLC0415 - only at the end

        end = monotonic() + _JOIN_S
        for thread in self._threads:
            if thread.ident not in {None, own}:  # at the interpreter's end none begins any more
                thread.join(max(end - monotonic(), 0.0))

    def leave(self) -> None:
        """Forget all of it, in a forked child: it is the parent's."""
        self.stopped = True
        self._at_exit.clear()

    def run_control(self) -> None:
        """Handle the engine's events until it stops."""
        self._control_ident = get_ident()
        control = self.engine.control
        while True:
            event = control()
            if event is None:
                if self.stopped:
                    return
                continue
            try:
                self._handle(event)
            except Exception as error:  # noqa: BLE001 - the next event has to be handled
                if self.stopped:
                    return
                _report(error, f"while {event[0]!r} was handled")
            del event

    def _handle(self, event: tuple[Any, ...]) -> None:
        kind = event[0]
        if kind == "control":
            self._handle_told(event[1], event[2])
        elif kind == "worker":
            from monarch._actor.dispatch import start_worker  # noqa: PLC0415 - above this module

            start_worker(self, event[1])
        elif kind == "readable":
            self._handle_readable(event[1])
        elif kind == "dial":
            self._handle_dial(event[1])
        elif kind == "link_lost":
            for lost in list(self._on_link_lost):
                lost(event[1])
        elif kind == "cancel":
            if self._on_cancel is not None:
                self._on_cancel(event[1])
        elif kind == "stuck":
            if self._on_stuck is not None:
                self._on_stuck(event[1])
        elif kind in {"stalled", "alive"}:
            for stalled in list(self._on_stalled):
                stalled(event[1], event[2] if kind == "stalled" else None)
        elif kind == "warning":
            import warnings  # noqa: PLC0415 - at most once

            warnings.warn(event[1], RuntimeWarning, stacklevel=1)

    def _handle_told(self, peer: int, data: Any) -> None:
        kind, inbox, body = loads(data)
        handler = self._handlers.get(kind)
        if handler is None:
            if inbox:
                error = LookupError(f"process {self.id:x} has no handler for {kind!r}")
                self.engine.post(peer, inbox, 0, ERROR, pack(error), None)
            return
        if not inbox:
            handler(peer, body)
            return
        try:
            answer, status = pack(handler(peer, body)), OK
        except Exception as error:  # noqa: BLE001 - it is the answer
            answer, status = _packed_error(error), ERROR
        self.engine.post(peer, inbox, 0, status, answer, None)

    def _handle_readable(self, token: int) -> None:
        entry = self._on_readable.get(token)
        if entry is None:
            return
        fd, handler, once = entry
        if once:
            del self._on_readable[token]
        try:
            handler()
        finally:
            if token in self._on_readable:
                self.engine.watch(fd, token)

    def _handle_dial(self, peer: int) -> None:
        if self._on_dial is None:
            text = f"process {peer:x} cannot be reached: this process makes no links"
            self.fail_peer(peer, pack(ConnectionError(text)))
            return
        self._on_dial(peer)


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


def shutdown_context() -> Future[None]:
    """End what this process has of the runtime, its meshes included. Repeatable; also at exit."""
    if _process is not None:
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
    made.shutdown()


def _after_fork() -> None:
    """A forked child has none of its parent's threads: it begins anew, and leaves these alone."""
    global _process, _lock  # noqa: PLW0603
    _lock = allocate_lock()
    if _process is not None:
        from monarch._actor import cancel, cell, deadlines, waiting  # noqa: PLC0415 - as above

        cell.cells.clear()
        cancel.slots.clear()
        waiting.loop_workers.clear()
        deadlines.renew()
        _process.leave()
        _forked.append(_process)
        _process = None


os.register_at_fork(after_in_child=_after_fork)


def _packed_error(error: Exception) -> bytes:
    try:
        return pack(error)
    except Exception:  # noqa: BLE001 - its text can be sent
        return pack(RuntimeError(f"{type(error).__name__}: {error}"))


def _report(error: BaseException, when: str) -> None:
    import sys  # noqa: PLC0415 - only on the way out
    import traceback  # noqa: PLC0415

    if sys.stderr is not None:
        text = "".join(traceback.format_exception(error))
        sys.stderr.write(f"monarch: {when}: {text}")
