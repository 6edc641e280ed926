"""The host by which a program outside of a cluster reaches the others of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from monarch import config
from monarch._actor.process import process, running_process
from monarch._link import sockets
from monarch._link.address import parse
from monarch._link.handshake import CLIENT
from monarch._proc.names import found_by
from monarch.errors import LinkError

if TYPE_CHECKING:
    from monarch._link.address import Address


def attach(addr: str) -> None:
    """Reach other hosts, where they are not reached here, by way of the one that serves at `addr`.

    That is for programs outside of a cluster which can reach one host of it. An address off this
    host is tried from here for half a second first; a name that is not known here is looked up
    there. The host passes on the bytes of such links, which stay encrypted for the host they
    lead to. Repeated with the same address it does nothing.

    Raises:
        RuntimeError: the runtime is in use already, or attached to another address.
        LinkError: nothing answers there, or it refuses.

    """
    global _attached  # noqa: PLW0603 - a program attaches once
    where = parse(addr)
    if not needed(addr):
        return
    seconds = config.value("mesh_attach_config_timeout")
    here = process()
    gate = here.gate
    assert gate is not None  # noqa: S101 - of a process that links
    dial = sockets.resolve(where.dial)
    peer = gate.connect(dial, peer=where.proc, role=CLIENT, seconds=seconds)
    here.add_peer(peer, dial.url)
    gate.go_by(dial)
    _attached = _Gateway(where.dial.url, peer)


def needed(addr: str) -> bool:
    """Whether this program has yet to be attached to this address.

    Raises:
        RuntimeError: it cannot be any more.

    """
    if _attached is not None and _attached.url == parse(addr).dial.url:
        return False
    if _attached is not None:
        raise RuntimeError(
            f"attach({addr!r}): this program is attached to {_attached.url}, for good; start "
            "another one to go by another host"
        )
    if running_process() is not None:
        raise RuntimeError(
            f"attach({addr!r}) comes too late: this program has begun to use the runtime; call it "
            "first"
        )
    return True


class _Gateway(NamedTuple):
    """The host that this program is attached to."""

    url: str
    proc: int


_attached: _Gateway | None = None


def resolve(dial: Address, seconds: float) -> Address:
    """The address with a number, which the host that this program is attached to may know.

    Raises:
        LinkError: the name is not known.

    """
    try:
        return sockets.resolve(dial)
    except LinkError:
        if _attached is None:
            raise
        return found_by(process(), _attached.proc, dial, seconds)
