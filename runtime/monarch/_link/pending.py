"""Connections in the making: what the gate keeps of each."""

from __future__ import annotations

import errno
import os
import time

from monarch.errors import LinkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import Protocol

    from monarch._link import handshake
    from monarch._link.address import Address
    from monarch._link.secret import Secret

    class Engine(Protocol):
        """What the gate asks of the engine, from any thread."""

        def add_link(self, peer: int, fd: int) -> None: ...
        def has_link(self, peer: int) -> bool: ...

    Done = Callable[[int, LinkError | None], None]

FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.1  # seconds between two tries to reach a listener


class Identity:
    """Who a process is in its links: its id, its role in them, the secret it holds."""

    __slots__ = ("engine", "own", "role", "secret")

    def __init__(self, engine: Engine, own: int, secret: Callable[[], Secret], role: int) -> None:
        self.engine = engine
        self.own = own
        self.secret = secret
        self.role = role


class Door:
    """A listening socket."""

    __slots__ = ("address", "sock")

    def __init__(self, sock: socket, address: Address) -> None:
        self.sock = sock
        self.address = address


class Guest:
    """A connection that came in and has not authenticated yet."""

    __slots__ = ("end", "side", "sock")

    def __init__(self, sock: socket, side: handshake.Listener, end: float) -> None:
        self.sock = sock
        self.side = side
        self.end = end


class Dial:
    """A link that is wanted. `sock` is None between two tries; `side` while it connects."""

    __slots__ = (
        "address",
        "began",
        "done",
        "end",
        "noticed",
        "pause",
        "peer",
        "role",
        "side",
        "sock",
        "until",
    )

    def __init__(self, address: Address, peer: int, role: int, until: float, done: Done) -> None:
        self.address = address
        self.peer = peer
        self.role = role
        self.until = until  # when to give up
        self.done = [done]
        self.sock: socket | None = None
        self.side: handshake.Dialer | None = None
        self.end = 0.0  # when this try ends, or the next one starts
        self.pause = FIRST_PAUSE
        self.began = time.monotonic()
        self.noticed = False  # that it takes long


def send(sock: socket, data: bytes) -> None:
    """Send a message of the handshake whole: it is far smaller than the buffer of a new socket."""
    if data and sock.send(data) != len(data):
        raise OSError(errno.ENOBUFS, "the peer does not read")


def try_send(sock: socket, data: bytes) -> None:
    try:
        send(sock, data)
    except OSError:
        return


def close(dial: Dial) -> None:
    if dial.sock is not None:
        dial.sock.close()
    dial.sock = dial.side = None


def unreachable(address: Address, number: int) -> LinkError:
    text = os.strerror(number) if number else "the connection ended"
    return LinkError("unreachable", f"nothing answers at {address}: {text}")


def foreign(address: Address, uid: int | None) -> LinkError:
    return LinkError(
        "user",
        f"the process that listens on {address} belongs to uid {uid}, and this one to uid "
        f"{os.geteuid()}",
    )
