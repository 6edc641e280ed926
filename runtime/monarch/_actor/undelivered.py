"""Messages that ask for no answer and were not delivered: they come back to who sent them.

Those are `broadcast`, `send` without a port, and what is sent to a port. The process that finds out
tells the sender's; there the actor is asked: between two messages where it has a thread, on an
event loop also while an endpoint of it waits.
"""

from __future__ import annotations

from monarch._actor.actor import Actor
from monarch._actor.cell import cells
from monarch._actor.control import warn
from monarch._actor.pickling import pack
from monarch._actor.replies import UNDELIVERED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._actor.process import Process

__all__ = ["UndeliverableMessage", "hand_back", "returned"]

_SUPERVISE, _BESIDE = 4, 128


class UndeliverableMessage:
    """A message that was not delivered, as `Actor._handle_undeliverable_message` gets it.

    Attributes:
        endpoint: the endpoint that was called; empty for a message to a port.
        died: who it was for has died or was stopped, and the owner of that is told.

    """

    __slots__ = ("_proc", "_sender", "_target", "died", "endpoint")

    def __init__(
        self, proc: int, target: int, endpoint: str, sender: tuple[int, int], *, died: bool
    ) -> None:
        self._proc = proc
        self._target = target
        self._sender = sender
        self.endpoint = endpoint
        self.died = died

    def sender(self) -> str:
        """The id of the actor that sent it, as `context().actor_instance.actor_id`."""
        proc, actor = self._sender
        cell = cells.get(actor)
        return f"{'client' if cell is None else cell.name}.{proc:016x}:{actor:016x}"

    def dest(self) -> str:
        """Who it was for: an actor's id with the endpoint, or a port."""
        if self.endpoint:
            return f"{self._proc:016x}:{self._target:016x}.{self.endpoint}"
        return f"port {self._target} of process {self._proc:016x}"

    def error_msg(self) -> str:
        """Why it was not delivered."""
        if self.died:
            return "who it was for has ended"
        return "there is no such actor" if self.endpoint else "nobody receives there any more"

    def __str__(self) -> str:
        what = f"a call of {self.endpoint!r}" if self.endpoint else "a message to a port"
        hint = "" if self.endpoint else " (port.return_undeliverable = False lets it drop them)"
        return f"{what} was not delivered to {self.dest()}: {self.error_msg()}{hint}"

    def __repr__(self) -> str:
        return f"<UndeliverableMessage: {self}>"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._proc, self._target, self.endpoint, self._sender, self.died)


def _rebuild(
    proc: int, target: int, endpoint: str, sender: tuple[int, int], died: bool
) -> UndeliverableMessage:
    return UndeliverableMessage(proc, target, endpoint, sender, died=died)


def returned(
    here: Process,
    proc: int,
    status: int,
    sender_proc: int,
    sender: int,
    target: int,
    endpoint: str,
) -> None:
    """The engine could not deliver a message: bring it back. Runs in the control thread."""
    back = (sender_proc, sender)
    message = UndeliverableMessage(proc, target, endpoint, back, died=status != UNDELIVERED)
    if sender_proc == here.id:
        hand_back(here, sender, message)
    else:
        here.tell(sender_proc, "undelivered", (sender, message))


def hand_back(here: Process, sender: int, message: UndeliverableMessage) -> None:
    """Let the actor of this process that sent a message deal with it; 0 is the program itself."""
    if not sender:
        if not message.died and not here.stopped:
            warn(str(message))
        return
    cell = cells.get(sender)
    if cell is None:
        return
    asks = cell.cls._handle_undeliverable_message is not Actor._handle_undeliverable_message  # type: ignore[attr-defined]  # noqa: SLF001
    if asks or not message.died:
        target = here.engine.targets([here.id], [sender])
        here.engine.cast(target, "", pack(message), None, 0, b"", _SUPERVISE | _BESIDE)
