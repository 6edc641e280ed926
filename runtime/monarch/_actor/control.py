"""The control thread of a process: it takes the engine's events to those who registered for them.

Events are messages of the control plane (told and asked by `Process.tell` and `ask`), lost links,
peers to dial, descriptors to read, workers that are wanted, messages that came back. Handlers run
in the thread and do not block.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident

from monarch._actor.pickling import loads, pack
from monarch._actor.replies import ERROR, OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from monarch._core import Engine, Request, Worker

    Handler = Callable[[int, Any], object]

__all__ = ["Control", "report", "warn"]


class Control:
    """Who wants which events.

    Attributes:
        engine: what sends, receives and hands out messages.
        id: the proc id; random, not zero, never used again.
        stopped: the process's part in the runtime has ended.

    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.id: int = engine.proc
        self.stopped = False
        self._lock = allocate_lock()
        self._control_ident = 0
        self._handlers: dict[str, Handler] = {}
        self._on_link_lost: list[Callable[[int], object]] = []
        self._on_broken: list[Callable[[int], object]] = []
        self._on_dial: Callable[[int], object] | None = None
        self._on_unanswered: Callable[[int], object] | None = None
        self._on_absent: Callable[[int], object] | None = None
        self._on_handed_over: Callable[[int, bytes], object] | None = None
        self._on_stalled: list[Callable[[int, float | None], object]] = []
        self._on_stuck: Callable[[int], object] | None = None
        self._on_cancel: Callable[[Request], object] | None = None
        self._on_worker: Callable[[Worker], object] | None = None
        self._on_returned: Callable[..., object] | None = None
        self._on_readable: dict[int, tuple[int, Callable[[], object], bool]] = {}
        self._next_token = 1

    def on(self, kind: str, handler: Handler) -> None:
        """Let `handler(peer, body)` have what is told or asked under this kind.

        What it returns answers an `ask`, and so does what it raises.
        """
        self._handlers[kind] = handler

    def on_link_lost(self, handler: Callable[[int], object]) -> None:
        """Call `handler(peer)` when the link to a process ends."""
        self._on_link_lost.append(handler)

    def on_broken(self, handler: Callable[[int], object]) -> None:
        """Call `handler(peer)` when the connection to a process of another host has ended.

        The link is lost if no other connection comes in its place within a heartbeat.
        """
        self._on_broken.append(handler)

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

    def on_absent(self, handler: Callable[[int], object]) -> None:
        """Call `handler(peer)` when a process that is dialled on this host does not listen here."""
        self._on_absent = handler

    def absent(self, peer: int) -> None:
        """A process that is dialled does not listen on this host; it is dialled on."""
        if self._on_absent is not None and not self.stopped:
            self._on_absent(peer)

    def on_handed_over(self, handler: Callable[[int, bytes], object]) -> None:
        """Call `handler(descriptor, hosts)` with a connection that came to this host's port."""
        self._on_handed_over = handler

    def on_worker(self, handler: Callable[[Worker], object]) -> None:
        """Call `handler(worker)` when a thread is wanted for it."""
        self._on_worker = handler

    def on_returned(self, handler: Callable[..., object]) -> None:
        """Call `handler(process, status, sender's process, sender, receiver, endpoint)`.

        It is called for a message that asks for no reply and was not delivered, in the process that
        finds out.
        """
        self._on_returned = handler

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
                report(error, f"while {event[0]!r} was handled")
            del event

    def _handle(self, event: tuple[Any, ...]) -> None:
        kind = event[0]
        if kind == "control":
            self._handle_told(event[1], event[2])
        elif kind == "worker":
            if self._on_worker is not None:
                self._on_worker(event[1])
        elif kind == "readable":
            self._handle_readable(event[1])
        elif kind == "dial":
            if self._on_dial is not None:
                self._on_dial(event[1])
        elif kind == "broken":
            for broken in list(self._on_broken):
                broken(event[1])
        elif kind == "link_lost":
            for lost in list(self._on_link_lost):
                lost(event[1])
        elif kind == "cancel":
            if self._on_cancel is not None:
                self._on_cancel(event[1])
        elif kind == "returned":
            if self._on_returned is not None:
                self._on_returned(*event[1:])
        elif kind == "stuck":
            if self._on_stuck is not None:
                self._on_stuck(event[1])
        elif kind in {"stalled", "alive"}:
            for stalled in list(self._on_stalled):
                stalled(event[1], event[2] if kind == "stalled" else None)
        elif kind == "handed_over":
            if self._on_handed_over is not None:
                self._on_handed_over(event[2], event[3])
        elif kind == "warning":
            warn(event[1])

    def _handle_told(self, peer: int, data: Any) -> None:
        try:
            kind, inbox, body = loads(data)
        except Exception as raised:  # noqa: BLE001 - garbage raises anything
            why = f"it sent a message that cannot be read ({type(raised).__name__}: {raised})"
            say(f"the link to process {peer:016x} ends: {why}")
            self.engine.lose_link(peer, why)
            return
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


def _packed_error(error: Exception) -> bytes:
    try:
        return pack(error)
    except Exception:  # noqa: BLE001 - its text can be sent
        return pack(RuntimeError(f"{type(error).__name__}: {error}"))


_warned: dict[Any, Any] = {}


def warn(text: str) -> None:
    """Warn of something that no line of the program did just now; once of the same."""
    import warnings  # noqa: PLC0415 - rarely

    warnings.warn_explicit(text, RuntimeWarning, "monarch", 0, registry=_warned)


def say(text: str) -> None:
    """Print a line about what nobody waits for."""
    import sys  # noqa: PLC0415 - only on the way out

    if sys.stderr is not None:
        sys.stderr.write(f"monarch: {text}\n")


def report(error: BaseException, when: str) -> None:
    """Print an error that nobody waits for."""
    import sys  # noqa: PLC0415 - only on the way out
    import traceback  # noqa: PLC0415

    if sys.stderr is not None:
        text = "".join(traceback.format_exception(error))
        sys.stderr.write(f"monarch: {when}: {text}")
