"""Which kind of address the program listens on beside its own: `enable_transport`."""

from __future__ import annotations

from monarch._link.address import Address, parse
from monarch.errors import AddressError, UnsupportedAddressError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._link.channel_transport import ChannelTransport

KINDS = (
    "ipc",
    "local",
    "metatls",
    "metatls-hostname",
    "metaquic",
    "metaquic-hostname",
    "quic",
    "tcp",
    "tcp-hostname",
    "tls",
)

_chosen: tuple[str, Address | None] | None = None
_started = False


def enable_transport(transport: ChannelTransport | str) -> None:
    """Choose how other programs reach this one; before anything else of the runtime is used.

    Processes of one host always talk over Unix sockets. "tcp" lets this program be dialled on
    loopback as well, and so does an address, `tcp://127.0.0.1:port` or `ipc://name`.

    Raises:
        RuntimeError: the runtime is in use already, or another transport was chosen.
        UnsupportedAddressError: the transport leaves this host.
        AddressError: the text is neither a kind of transport nor an address.

    """
    global _chosen  # noqa: PLW0603 - one choice a process
    name, address = _read(transport)
    if _chosen is not None and _chosen[0] == name:
        return
    if _chosen is not None:
        raise RuntimeError(
            f"transport {name!r} was asked for, and {_chosen[0]!r} was enabled before: a program "
            "has one"
        )
    if _started and name != "ipc":
        raise RuntimeError(
            f"enable_transport({name!r}) comes too late: this program has begun to use the "
            "runtime; call it first"
        )
    _chosen = (name, address)


def listen_address() -> Address | None:
    """Where to listen beside the process's own address; from now on there is no other choice."""
    global _started  # noqa: PLW0603 - as above
    _started = True
    return None if _chosen is None else _chosen[1]


def _read(transport: ChannelTransport | str) -> tuple[str, Address | None]:
    name = getattr(transport, "value", transport)
    if not isinstance(name, str):
        raise TypeError(f"a transport is a ChannelTransport or text, not {type(name).__name__}")
    name = {"unix": "ipc"}.get(name, name)
    if name in {"ipc", "local"}:
        return name, None
    if name == "tcp":
        return name, parse("tcp://127.0.0.1:0")
    if name in KINDS:
        raise UnsupportedAddressError(
            f"transport {name!r} cannot be used: a program listens on this host alone, and hosts "
            'are served by `monarch serve --listen tcp://…`; write enable_transport("ipc") or '
            'enable_transport("tcp") (loopback)'
        )
    if ":" not in name:
        raise AddressError(f"{name!r} is no transport: {', '.join(KINDS)}, or an address")
    return name, parse(name)
