"""Sockets of links: bind, connect, who is at the other end."""

from __future__ import annotations

import _socket
import errno
import os
import stat
import struct
import sys

from monarch._link.address import Address, is_loopback, is_number
from monarch.errors import AddressError, LinkError

_BACKLOG = 128


def listen(address: Address) -> tuple[_socket.socket, Address]:
    """A listening, non-blocking socket and the address it has (a TCP port of 0 is filled in).

    Raises:
        AddressError: something listens there already, or the system refuses the address.

    """
    address = _to_bind(address)
    family = _family(address)
    made = _socket.socket(family, _socket.SOCK_STREAM | getattr(_socket, "SOCK_CLOEXEC", 0))
    try:
        made.setblocking(False)
        if family == _socket.AF_UNIX:
            _bind_unix(made, address)
        else:
            made.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            if family == _socket.AF_INET6 and address.host != "::":
                made.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 1)
            made.bind((address.host, address.port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise AddressError(f"cannot listen on {address}: {error.strerror}") from None
    except BaseException:
        made.close()
        raise
    if family == _socket.AF_UNIX:
        return made, address
    port = made.getsockname()[1]
    bound = address.at(address.host, port)
    if address.dial is not address:
        told = address.dial
        bound.dial = told.at(told.host, told.port or port) if told.kind == "tcp" else told
    return made, bound


def resolve(address: Address) -> Address:
    """The same address with a number for its host; asks the system's name service, which may take
    seconds.

    Raises:
        LinkError: the name is not known.

    """
    if address.kind != "tcp" or is_number(address.host):
        return address
    return address.at(_numbers(address)[0], address.port)


def local_url(connection: _socket.socket) -> str:
    """The address of this end, as others can dial it."""
    name = connection.getsockname()
    return Address("tcp", host=plain_host(name[0]), port=name[1]).url


def own_host(connection: _socket.socket) -> str:
    """The address of this end; that of loopback where it is none of a network."""
    if connection.family == _socket.AF_UNIX:
        return "127.0.0.1"
    return plain_host(connection.getsockname()[0])


def peer_host(connection: _socket.socket) -> str:
    """The address of the other end; empty where it is a process of this host by a Unix socket."""
    if connection.family == _socket.AF_UNIX:
        return ""
    return plain_host(connection.getpeername()[0])


def plain_host(host: str) -> str:
    """An address as it is written; IPv4 that came through an IPv6 socket as IPv4."""
    return host.removeprefix("::ffff:") if "." in host else host


def connect(address: Address) -> tuple[_socket.socket, int]:
    """A non-blocking socket on its way to `address`, and the error number of `connect` or 0."""
    made = _socket.socket(
        _family(address), _socket.SOCK_STREAM | getattr(_socket, "SOCK_CLOEXEC", 0)
    )
    made.setblocking(False)
    if address.kind == "unix":
        return made, made.connect_ex(_path(address))
    made.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    return made, made.connect_ex((address.host, address.port))


def accept(listener: _socket.socket) -> _socket.socket:
    """The next connection, non-blocking."""
    number, _ = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001
    made = _socket.socket(fileno=number)
    made.setblocking(False)
    if made.family != _socket.AF_UNIX:
        made.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    return made


def keep_alive(connection: _socket.socket) -> None:
    """Have the system notice some time that the other end is gone without a word."""
    connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)


def pending_error(connection: _socket.socket) -> int:
    """The error number with which a `connect` on its way ended, 0 if it is connected."""
    return connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)


def peer_uid(connection: _socket.socket) -> int | None:
    """The user at the other end as the kernel says; None for TCP, where it says nothing."""
    if connection.family != _socket.AF_UNIX:
        return None
    if sys.platform == "linux":
        data = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        return int(struct.unpack("=iII", data)[1])
    # struct xucred of the BSDs: version, uid, and groups that are of no interest here.
    data = connection.getsockopt(0, 1, 76)
    return int(struct.unpack_from("=II", data)[1])


def channel(name: str | bytes | tuple[str, int]) -> bytes:
    """The text both ends agree on for the address of a listener, as the kernel gives it."""
    if isinstance(name, tuple):
        return f"tcp {name[0]} {name[1]}".encode()
    return b"unix " + (name if isinstance(name, bytes) else os.fsencode(name))


def remove(listener: _socket.socket, address: Address) -> None:
    """Close a listener and take its file away."""
    listener.close()
    if address.kind == "unix" and not address.path.startswith("@"):
        try:
            os.unlink(address.path)  # noqa: PTH108 - pathlib costs start-up time
        except FileNotFoundError:
            return


def _to_bind(address: Address) -> Address:
    """The address with a number; a name of this host that others cannot use is refused."""
    if address.host == "*":
        found = address.at("::" if _has_ipv6() else "0.0.0.0", address.port)  # noqa: S104 - asked for
        found.dial = address.dial if address.dial is not address else found
        return found
    if address.kind != "tcp" or is_number(address.host) or address.host == "localhost":
        return address
    try:
        numbers = _numbers(address)
    except LinkError as error:
        raise AddressError(str(error)) from None
    away = [number for number in numbers if not is_loopback(number)]
    if not away:
        raise AddressError(
            f"{address}: the name {address.host} means {numbers[0]} on this host, which no other "
            f"host reaches; give the address of an interface (tcp://10.0.0.1:{address.port}), or "
            f"tcp://localhost:{address.port} for this host alone"
        )
    found = address.at(away[0], address.port)
    found.dial = address.dial if address.dial is not address else found
    return found


def _has_ipv6() -> bool:
    try:
        _socket.socket(_socket.AF_INET6, _socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _numbers(address: Address) -> list[str]:
    """What a name stands for, IPv4 first."""
    try:
        found = _socket.getaddrinfo(address.host, address.port, 0, _socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LinkError(
            "unreachable", f"{address}: the name {address.host} is not known here: {reason}"
        ) from None
    numbers = dict.fromkeys(str(entry[4][0]) for entry in found)
    return sorted(numbers, key=lambda number: ":" in number)


def _family(address: Address) -> int:
    if address.kind == "unix":
        return _socket.AF_UNIX
    return _socket.AF_INET6 if ":" in address.host else _socket.AF_INET


def _path(address: Address) -> str:
    return "\0" + address.path[1:] if address.path.startswith("@") else address.path


def _bind_unix(made: _socket.socket, address: Address) -> None:
    if not address.path.startswith("@"):
        folder = os.path.dirname(address.path)  # noqa: PTH120 - pathlib costs start-up time
        if folder == f"/tmp/monarch-{os.getuid()}":  # noqa: S108 - of this user alone
            os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - as above
        os.fchmod(made.fileno(), 0o600)  # Linux gives this mode to the file that bind makes
    try:
        made.bind(_path(address))
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not _is_abandoned(address):
            raise
        os.unlink(address.path)  # noqa: PTH108 - pathlib costs start-up time
        made.bind(_path(address))


def _is_abandoned(address: Address) -> bool:
    """Whether the file at this address is a socket that nobody listens on any more."""
    if address.path.startswith("@") or not stat.S_ISSOCK(os.lstat(address.path).st_mode):
        return False
    probe, error = connect(address)
    probe.close()
    return error == errno.ECONNREFUSED
