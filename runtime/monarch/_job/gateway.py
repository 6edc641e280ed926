"""The host by which a program outside of a cluster reaches the others of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from monarch import config
from monarch._actor.process import process, running_process
from monarch._link import sockets
from monarch._link.address import Address, is_loopback, parse
from monarch._link.handshake import CLIENT
from monarch._proc.names import found_by
from monarch.errors import AddressError, LinkError

if TYPE_CHECKING:
    from collections.abc import Callable


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


def entrance(attach_to: object, others: str) -> str:
    """The address of a host of a cluster that a job was given as `attach_to`.

    On loopback it is where a forward to one begins. `others` is what else could have been given.

    Raises:
        AddressError: it is no such address.

    """
    try:
        found = parse(attach_to)  # type: ignore[arg-type]  # what it is, is asked there
    except AddressError as error:
        raise AddressError(
            f"attach_to is {others}, or the address of a host by way of which the others are "
            f"reached: {error}"
        ) from None
    if found.kind != "tcp":
        raise AddressError(
            f"attach_to={attach_to!r} is neither another host nor where a forward to one begins: "
            "write tcp://address:port"
        )
    tunnel = is_loopback(found.host)
    return Address("tcp", host=found.host, port=found.port, tunnel=tunnel).url


def enter(address: str, forward: Callable[[int], str]) -> None:
    """Be attached to the host at the address that `entrance` gave.

    `forward` says how a forward to a host of the job is made that begins at a port here.

    Raises:
        LinkError: nothing answers there, or it refuses.
        RuntimeError: the runtime is in use already, or attached to another address.

    """
    try:
        attach(address)
    except LinkError as error:
        where = parse(address)
        if where.tunnel:
            error.add_note(
                f"A forward to a host of the job has to begin at {address}. The hosts are there, "
                f"and state() goes on after, say:\n{forward(where.port)}"
            )
        raise


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
