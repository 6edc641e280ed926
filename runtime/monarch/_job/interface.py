"""Which address of this host others reach it at."""

from __future__ import annotations

import socket

_NOWHERE = ("192.0.2.1", "2001:db8::1")  # addresses of documentation: nothing is sent there


def reachable(towards: str = "") -> str:
    """The address of the interface by which this host reaches `towards`, or most others.

    Nothing is sent. Without an interface but loopback it is the address of that.
    """
    for target in filter(None, (towards, *_NOWHERE)):
        try:
            found = socket.getaddrinfo(target, 9, type=socket.SOCK_DGRAM)
        except OSError:
            continue
        for family, kind, protocol, _name, address in found:
            own = _towards(family, kind, protocol, address)
            if own and not own.startswith("127.") and own != "::1":
                return own
    return "127.0.0.1"


def _towards(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> str:
    with socket.socket(family, kind, protocol) as one:
        try:
            one.connect(address)
        except OSError:
            return ""
        return str(one.getsockname()[0])


def url(bind: str, port: int, towards: str = "") -> str:
    """The address to listen on: `bind`, or where it is empty the one that others reach."""
    host = bind or reachable(towards)
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
