"""Who comes to the doors of a process: accepted, asked for the secret, taken in or turned away.

All of it runs on the gate's thread, which owns the sockets.
"""

from __future__ import annotations

import errno
import os
import time

from monarch._link import handshake, sockets
from monarch._link.handshake import HandshakeError
from monarch._link.pending import LONGEST_PAUSE, Guest, send
from monarch.errors import SecretError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from monarch._link.dials import Dials
    from monarch._link.pending import Door, Identity

STRANGERS = 64  # connections that have not authenticated yet; more wait in the system's queue
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Guests:
    """Connections that came in and have not authenticated yet.

    `roles` are those that a guest may have. `await_door(door)` watches a door where nobody knocks
    any more. `linked(peer, role)` is called once the engine has the link. When two processes dial
    each other at once, the dial of the one with the smaller proc id stands: `dials` knows.
    """

    def __init__(
        self,
        identity: Identity,
        roles: frozenset[int],
        await_door: Callable[[Door], object],
        linked: Callable[[int, int], None] | None,
        dials: Dials,
    ) -> None:
        self._identity = identity
        self._dials = dials
        self._roles = roles
        self._await = await_door
        self._linked = linked
        self._told = False
        self._ready: list[Door] = []
        self._guests: dict[int, Guest] = {}

    def __bool__(self) -> bool:
        return bool(self._ready or self._guests)

    def knocked(self, door: Door) -> None:
        """Somebody is at the door."""
        self._ready.append(door)

    def admit(self) -> None:
        """Accept who knocks, as far as there is room."""
        while self._ready and len(self._guests) < STRANGERS:
            door = self._ready[0]
            try:
                sock = sockets.accept(door.sock)
            except BlockingIOError:
                del self._ready[0]
                self._await(door)
                continue
            except OSError as error:
                if error.errno in _SCARCE:
                    return
                continue  # the connection is gone already
            if sockets.peer_uid(sock) not in {None, os.geteuid()}:
                send(sock, handshake.refusal("user"))
                sock.close()
                continue
            try:
                held = self._identity.secret()
            except SecretError as error:
                sock.close()
                self._tell_once(f"monarch: no process can link to this one: {error}")
                continue
            side = handshake.Listener(
                held,
                self._identity.own,
                sockets.channel(sock.getsockname()),
                role=self._identity.role,
                roles=self._roles,
            )
            end = time.monotonic() + handshake.SECONDS
            self._guests[sock.fileno()] = Guest(sock, side, end)

    def waits(self) -> Iterator[tuple[int, Guest]]:
        """The descriptors to read, each with its guest."""
        yield from self._guests.items()

    def ends(self, now: float) -> Iterator[float]:
        """When something is due, on the monotonic clock."""
        for guest in self._guests.values():
            yield guest.end
        if self._ready and len(self._guests) < STRANGERS:
            yield now + LONGEST_PAUSE  # the system lacked something that accept needs

    def step(self, guest: Guest) -> None:
        """Read what the guest sent; decide when it has proven that it knows the secret."""
        try:
            send(guest.sock, guest.side.feed(guest.sock.recv(guest.side.need)))
        except BlockingIOError:
            return
        except HandshakeError as error:
            self._turn_away(guest, error.farewell)
            return
        except OSError:
            self._turn_away(guest, b"")
            return
        if guest.side.proven:
            self._decide(guest)

    def expire(self, now: float) -> None:
        """Turn away who took too long."""
        for guest in [g for g in self._guests.values() if g.end <= now]:
            self._turn_away(guest, b"")

    def close(self) -> None:
        """Turn everybody away."""
        for guest in list(self._guests.values()):
            self._turn_away(guest, b"")

    def _decide(self, guest: Guest) -> None:
        peer = guest.side.peer
        engine = self._identity.engine
        if engine.has_link(peer) or (self._identity.own < peer and self._dials.trying(peer)):
            self._turn_away(guest, handshake.refusal("duplicate"))
            return
        try:
            send(guest.sock, guest.side.accept())
        except OSError:
            self._turn_away(guest, b"")
            return
        del self._guests[guest.sock.fileno()]
        engine.add_link(peer, guest.sock.detach())
        if self._linked is not None:
            self._linked(peer, guest.side.peer_role)

    def _turn_away(self, guest: Guest, farewell: bytes) -> None:
        del self._guests[guest.sock.fileno()]
        try:
            send(guest.sock, farewell)
        except OSError:
            pass
        finally:
            guest.sock.close()

    def _tell_once(self, text: str) -> None:
        if not self._told:
            self._told = True
            os.write(2, f"{text}\n".encode())
