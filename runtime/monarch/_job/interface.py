"""Which address of this host others reach it at."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from monarch._link.address import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOWHERE = ("192.0.2.1", "2001:db8::1")  # addresses of documentation: nothing is sent there
_GET_FLAGS, _GET_ADDRESS = 0x8913, 0x8915  # SIOCGIFFLAGS, SIOCGIFADDR
_UP, _LOOPBACK = 0x1, 0x8


def reachable(towards: str = "") -> str:
    """The address of the interface by which this host reaches `towards`, or most others.

    Nothing is sent. Where no route leads anywhere it is the address of the first interface that is
    up, and without one but loopback the address of that.
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
    return next(_own(), "127.0.0.1")


def _own() -> Iterator[str]:
    """The addresses of this host's interfaces that are up, but for loopback; IPv4 first."""
    if sys.platform != "linux":
        return
    import fcntl  # noqa: PLC0415 - not everywhere

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for _index, name in socket.if_nameindex():
            asked = struct.pack("40s", name.encode()[:15])
            with contextlib.suppress(OSError):
                flags = struct.unpack_from("H", fcntl.ioctl(one, _GET_FLAGS, asked), 16)[0]
                found = socket.inet_ntoa(fcntl.ioctl(one, _GET_ADDRESS, asked)[20:24])
                if flags & _UP and not flags & _LOOPBACK and not found.startswith("169.254."):
                    yield found
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines():
            digits, _number, _prefix, scope, *_ = line.split()
            if scope == "00":  # neither loopback nor of one link alone
                yield socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))


def _towards(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> str:
    with socket.socket(family, kind, protocol) as one:
        try:
            one.connect(address)
        except OSError:
            return ""
        return str(one.getsockname()[0])


def url(bind: str, port: int, towards: str = "") -> str:
    """The address to listen on: `bind`, or where it is empty the one that others reach."""
    return Address("tcp", host=bind or reachable(towards), port=port).url
