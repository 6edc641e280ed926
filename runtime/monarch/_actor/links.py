"""Links of this process to others: it listens, and dials whom something is to be sent to."""

from __future__ import annotations

from monarch import config
from monarch._actor.pickling import pack
from monarch._link import secret, transport
from monarch._link.address import of_proc, parse
from monarch._link.gate import Gate
from monarch._link.handshake import GOING_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._actor.process import Process
    from monarch.errors import LinkError

__all__ = ["begin"]

_LEAST_BREAK = 0.25  # seconds that a connection which broke has to be made again, as in the engine


def begin(here: Process) -> Gate:
    """Listen at the address of this process, and make links as the engine wants them."""
    gate = Gate(
        here.engine,
        here.id,
        secret.current,
        here.once_readable,
        here.forget,
        slow=here.unanswered,
        absent=here.absent,
    )
    gate.listen(parse(of_proc(here.id)))
    chosen = transport.listen_address()
    if chosen is not None:
        here.address = gate.listen(chosen).dial.url

    def failed(peer: int, error: LinkError | None) -> None:
        if error is not None and not here.stopped:
            here.fail_peer(peer, pack(error))

    def dial(peer: int) -> None:
        told = here.addresses.get(peer, "")
        # Processes of one host need nobody in between.
        where = parse(told if told not in {"", gate.public} else of_proc(peer))
        gate.dial(where, failed, peer=peer, seconds=config.value("message_delivery_timeout"))

    def went_on(peer: int, error: LinkError | None) -> None:
        if error is not None:
            here.give_up(peer, str(error))

    def broken(peer: int) -> None:
        told = here.addresses.get(peer, "")
        if told not in {"", gate.public} and here.engine.is_broken(peer):
            seconds = max(config.value("heartbeat_interval"), _LEAST_BREAK)
            gate.dial(parse(told), went_on, peer=peer, role=GOING_ON, seconds=seconds)

    here.on_dial(dial)
    here.on_broken(broken)
    here.on_handed_over(gate.take_over)
    here.at_exit(gate.close)
    return gate
