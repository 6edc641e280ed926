"""Addresses of hosts by their names, as programs hand them to libraries that dial by themselves."""

from __future__ import annotations

import enum
import ipaddress
import socket

__all__ = ["AddrType", "get_ipaddr", "get_sockaddr"]


class AddrType(enum.Enum):
    """Which addresses of a host are wanted: of IPv4, of IPv6, or any, those of IPv6 first."""

    Default = enum.auto()
    IPv4 = enum.auto()
    IPv6 = enum.auto()


_FAMILIES = {
    AddrType.Default: (socket.AF_INET6, socket.AF_INET),
    AddrType.IPv4: (socket.AF_INET,),
    AddrType.IPv6: (socket.AF_INET6,),
}


def get_ipaddr(hostname: str, port: int, addr_type: AddrType = AddrType.Default) -> str:
    """The first address of a host that other hosts can reach, as text without brackets.

    Args:
        hostname: its name, or an address of it.
        port: the TCP port that is to be reached.
        addr_type: which addresses are looked for.

    Raises:
        ValueError: `addr_type` is no `AddrType`.
        RuntimeError: the host has no such address.

    """
    if not isinstance(addr_type, AddrType):
        raise ValueError(  # noqa: TRY004 - what Monarch raises
            f"the type of an address is an AddrType of monarch.tools.network, not {addr_type!r}"
        )
    seen = []
    for family in _FAMILIES[addr_type]:
        try:
            found = socket.getaddrinfo(hostname, port, family, socket.SOCK_STREAM)
        except socket.gaierror as error:
            seen.append(str(error.strerror))
            continue
        for *_, address in found:
            text = str(address[0])
            if not ipaddress.ip_address(text).is_link_local:
                return text
            seen.append(f"{text} is of one link alone")
    kind = "address" if addr_type is AddrType.Default else f"{addr_type.name} address"
    why = "; ".join(dict.fromkeys(seen))
    raise RuntimeError(f"host {hostname!r} has no {kind} that other hosts can reach ({why})")


def get_sockaddr(hostname: str, port: int) -> str:
    """An address of a host with a port: `1.2.3.4:80`, or `[::1]:80`.

    Raises:
        RuntimeError: the host has no address.

    """
    address = get_ipaddr(hostname, port)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
