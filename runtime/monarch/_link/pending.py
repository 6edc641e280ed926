"""Connections in the making: what the gate keeps of each."""

from __future__ import annotations

import os
import time

from monarch.errors import LinkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import Protocol

    from monarch._core import TlsStream
    from monarch._link import handshake
    from monarch._link.address import Address
    from monarch._link.channel import Channel
    from monarch._link.secret import Secret
    from monarch._link.way import Asker

    class Engine(Protocol):
        """What the gate asks of the engine, from any thread."""

        def add_link(
            self, peer: int, fd: int, tls: TlsStream | None = ..., session: bool = ...
        ) -> None: ...
        def resume_link(self, peer: int, fd: int, tls: TlsStream | None = ...) -> None: ...
        def begin_link_again(self, peer: int, fd: int, tls: TlsStream | None = ...) -> None: ...
        def is_broken(self, peer: int) -> bool: ...
        def meet(self, peer: int, going_on: bool, dialling: bool, stands: bool) -> str: ...
        def hand_over(self, peer: int, fd: int, data: bytes) -> None: ...
        def has_link(self, peer: int) -> bool: ...

    Done = Callable[[int, LinkError | None], None]

FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.1  # seconds between two tries to reach a listener


class Identity:
    """Who a process is in its links: its id, its role in them, the secret it holds.

    `public` is where other hosts reach the processes of this one, empty where they do not; `far`
    has the peers on other hosts, of links that were made here. `ways` has, by the URL of an
    address, where it is reached from here in its place. `gateway` is the host agent that leads to
    addresses which are not reached from here, and `led` has the URLs where that was so.
    """

    __slots__ = ("engine", "far", "gateway", "led", "own", "public", "role", "secret", "ways")

    def __init__(self, engine: Engine, own: int, secret: Callable[[], Secret], role: int) -> None:
        self.engine = engine
        self.own = own
        self.secret = secret
        self.role = role
        self.public = ""
        self.far: set[int] = set()
        self.ways: dict[str, Address] = {}
        self.gateway: Address | None = None
        self.led: set[str] = set()


class Door:
    """A listening socket."""

    __slots__ = ("address", "sock")

    def __init__(self, sock: socket, address: Address) -> None:
        self.sock = sock
        self.address = address


class Guest:
    """A connection that came in and has not authenticated yet; `source` is the host it is from.

    One from another host says first whom it is `for_whom`: `route` holds what it has said of that.
    Then it may go on with TLS, which is `shaking` hands, and `side` comes last. `waits` for the
    process that it is for. `hosts` are the names that this host goes by.
    """

    __slots__ = ("channel", "end", "hosts", "route", "shaking", "side", "source", "waits")

    def __init__(self, channel: Channel, source: str, end: float) -> None:
        self.channel = channel
        self.source = source
        self.end = end
        self.side: handshake.Listener | None = None
        self.route: bytes | None = None
        self.shaking = self.waits = False
        self.hosts: tuple[str, ...] = ()

    @property
    def mute(self) -> bool:
        """Whether it has not even said whom it is for, or who it is."""
        if self.route is not None:
            return True
        return not self.hosts and self.side is not None and not self.side.peer


class Dial:
    """A link that is wanted.

    `channel` is None between two tries; `asker` asks the gateway for the way in those that are
    `led` by it; `shaking` while TLS begins; `side` is None until then. `aside` is how the last try
    of the other kind ended.
    """

    __slots__ = (
        "absent",
        "address",
        "aside",
        "asker",
        "began",
        "channel",
        "done",
        "end",
        "led",
        "noticed",
        "pause",
        "peer",
        "refused",
        "role",
        "shaking",
        "side",
        "tried",
        "until",
    )

    def __init__(self, address: Address, peer: int, role: int, until: float, done: Done) -> None:
        self.address = address
        self.peer = peer
        self.role = role
        self.until = until  # when to give up
        self.done = [done]
        self.channel: Channel | None = None
        self.side: handshake.Dialer | None = None
        self.asker: Asker | None = None
        self.aside: LinkError | None = None
        self.led = self.shaking = False
        self.end = 0.0  # when this try ends, or the next one starts
        self.pause = FIRST_PAUSE
        self.began = self.tried = time.monotonic()
        self.noticed = False  # that it takes long
        self.absent = False  # nobody listens there
        self.refused = False  # at the last try


def close(dial: Dial) -> None:
    if dial.channel is not None:
        dial.channel.close()
    dial.channel = dial.side = dial.asker = None
    dial.shaking = False


def unreachable(address: str, number: int) -> LinkError:
    text = os.strerror(number) if number else "the connection ended"
    return LinkError("unreachable", f"nothing answers at {address}: {text}")


def foreign(address: Address, uid: int | None) -> LinkError:
    return LinkError(
        "user",
        f"the process that listens on {address} belongs to uid {uid}, and this one to uid "
        f"{os.geteuid()}",
    )
