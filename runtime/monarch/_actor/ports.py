"""Ports: one-way channels between actors, as values that can be sent anywhere."""

# ruff: noqa: SLF001 - endpoints, handles and futures know each other
from __future__ import annotations

from monarch._actor.current import sender
from monarch._actor.future import PENDING, Future, late, settling
from monarch._actor.generic import Generic, R
from monarch._actor.pickling import dumps, loads
from monarch._actor.replies import ERROR, FAILED, OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from monarch._core import Inbox, Request

__all__ = ["Channel", "Port", "PortReceiver", "RankedPortReceiver", "reply_port"]


class Port(Generic[R]):
    """The sending end of a channel. It may be sent to any actor, and used there.

    What one sender sends arrives in order.

    Attributes:
        return_undeliverable: whether a message that nobody is there to receive comes back to the
            actor that sent it, in `_handle_undeliverable_message`; else it is dropped. True, but
            for the ports to which endpoints reply.

    """

    __slots__ = ("_inbox", "_once", "_proc", "_rank", "_used", "return_undeliverable")

    def __init__(self, proc: int, inbox: int, rank: int = 0, *, once: bool = False) -> None:
        self._proc = proc
        self._inbox = inbox
        self._rank = rank
        self._once = once
        self._used = False
        self.return_undeliverable = True

    def send(self, obj: R) -> None:
        """Send a value.

        Raises:
            TypeError: it cannot be pickled; the path to the part that cannot be is named.
            RuntimeError: the channel takes one message, and this port has sent it.

        """
        data, buffers = dumps(obj, "message")
        self._post(OK, data, buffers)

    def exception(self, exc: BaseException) -> None:
        """Send an exception: receiving it raises it, or a `RemoteError` if it cannot be sent.

        Raises:
            TypeError: it is none.
            RuntimeError: the channel takes one message, and this port has sent it.

        """
        if not isinstance(exc, BaseException):
            raise TypeError(f"exception() sends an exception, not {exc!r}; send() sends values")
        from monarch._actor.remote import dump_error  # noqa: PLC0415 - good calls do without

        data, buffers = dump_error(exc, itself=True)
        self._post(ERROR, data, buffers)

    def _post(self, status: int, data: bytes, buffers: list[Any] | None) -> None:
        if not self._inbox:
            return
        if self._once:
            if self._used:
                raise RuntimeError(f"{self} has sent the one message that its channel takes")
            self._used = True
        from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

        back = sender() if self.return_undeliverable else None
        engine = process().engine
        engine.post(self._proc, self._inbox, self._rank, status, data, buffers, back)

    def __reduce__(self) -> tuple[object, ...]:
        from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

        here = process()
        address = here.addresses.get(self._proc, "")
        if self._proc == here.id and here.gate is not None:
            address = here.gate.public
        kept = self._proc, self._inbox, self._rank, self.return_undeliverable, address
        return _port, (*kept, True) if self._once else kept

    def __repr__(self) -> str:
        return f"<Port {self._inbox} of process {self._proc:x}>"


class Messages(Future[R]):
    """The next message of a channel, taken when it is first waited for with success."""

    __slots__ = ("_receiver",)

    def __init__(self, receiver: PortReceiver[Any]) -> None:
        self._receiver = receiver
        self._state = PENDING

    def _wants(self) -> tuple[Inbox, int] | None:
        receiver = self._receiver
        return None if receiver.empty else (receiver._inbox, receiver._taken + 1)

    def _advance(self) -> None:
        receiver = self._receiver
        with settling:
            if self._state:
                return
            if receiver.empty:
                self._fail(ValueError("the one message of this channel has been received"))
                return
            item = receiver._inbox.take()
            if item is None:
                return
            receiver._taken += 1
            rank, status, data, buffers = item
            try:
                self._set(receiver._made(rank, _value(status, data, buffers, rank)))
            except Exception as error:  # noqa: BLE001 - the outcome is an error, whichever
                self._fail(error)

    def _title(self) -> str:
        return "a message of a channel"

    def _late(self, waited: float) -> str:
        return late("receiving from a channel", waited, []).replace("no answer", "no message")


class PortReceiver(Generic[R]):
    """The receiving end of a channel: `recv()` gives a future of the next message."""

    __slots__ = ("_inbox", "_once", "_taken")

    def __init__(self, inbox: Inbox, *, once: bool = False) -> None:
        self._inbox = inbox
        self._once = once
        self._taken = 0

    def recv(self) -> Future[R]:
        """The next message. An exception that was sent is raised.

        Where the channel takes one message and that has been received, it is a ValueError.
        """
        return Messages(self)

    @property
    def empty(self) -> bool:
        """Whether nothing more can come: the channel takes one message, which was received."""
        return self._once and self._taken > 0

    def ranked(self) -> RankedPortReceiver[R]:
        """The same channel, giving `(rank of the sender, message)`."""
        found: RankedPortReceiver[R] = RankedPortReceiver(self._inbox, once=self._once)
        found._taken = self._taken
        return found

    def _made(self, _rank: int, value: Any) -> Any:
        return value


class RankedPortReceiver(PortReceiver["tuple[int, R]"], Generic[R]):
    """A receiving end that tells the rank of each message's sender."""

    __slots__ = ()

    def _made(self, rank: int, value: Any) -> Any:
        return rank, value


class Channel(Generic[R]):
    """Makes channels."""

    @staticmethod
    def open(once: bool = False) -> tuple[Port[R], PortReceiver[R]]:
        """A channel's two ends; with `once` it takes a single message."""
        inbox, proc = _open(once)
        return Port(proc, inbox.id, once=once), PortReceiver(inbox, once=once)

    @staticmethod
    def open_ranked(once: bool = False) -> tuple[Port[R], RankedPortReceiver[R]]:
        """As `open`, with a receiver that gives `(rank, message)`."""
        inbox, proc = _open(once)
        return Port(proc, inbox.id, once=once), RankedPortReceiver(inbox, once=once)


def reply_port(request: Request) -> Port[Any]:
    """The port by which an endpoint answers this request."""
    if not request.reply_inbox:
        return Port(0, 0)
    # Who called may have given up: that is no fault of who answers.
    return _port(request.reply_proc, request.reply_inbox, request.rank, returns=False)


def _port(
    proc: int, inbox: int, rank: int, returns: bool, address: str = "", once: bool = False
) -> Port[Any]:
    if address:
        from monarch._actor.process import process  # noqa: PLC0415 - as above

        process().add_peer(proc, address)
    port: Port[Any] = Port(proc, inbox, rank, once=once)
    port.return_undeliverable = returns
    return port


def _open(once: bool) -> tuple[Inbox, int]:
    from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

    here = process()
    return here.engine.open_inbox(once), here.id


def _value(status: int, data: Any, buffers: list[Any] | None, rank: int) -> Any:
    if status == OK:
        return loads(data, buffers)
    if status == ERROR:
        from monarch._actor.remote import load_error  # noqa: PLC0415 - good calls do without

        raise load_error(data, buffers, "the sender", -1)
    from monarch.errors import SupervisionError, call_failed  # noqa: PLC0415 - on the way out

    failure = loads(data, buffers) if status == FAILED and len(data) else None
    if isinstance(failure, BaseException):
        raise failure
    if failure is not None:
        raise call_failed(failure)
    raise SupervisionError("the sender of a message is gone", None, (rank,))
