"""Who comes to the doors of a process: accepted, asked for the secret, taken in or turned away.

All of it runs on the gate's thread, which owns the sockets.
"""

from __future__ import annotations

import _socket
import errno
import os
import time

from monarch._link import handshake, sockets
from monarch._link.channel import Channel
from monarch._link.handshake import HandshakeError
from monarch._link.pending import LONGEST_PAUSE, Guest
from monarch.errors import SecretError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from monarch._link.dials import Dials
    from monarch._link.pending import Door, Identity
    from monarch._link.relays import Relays

STRANGERS = 64  # connections that have not authenticated yet
GRACE = 1.0  # seconds that one of them keeps its place against others in the same position
_AT_ONCE = 64  # that are accepted between two looks at those who are there
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Guests:
    """Connections that came in and have not authenticated yet.

    There is room for `STRANGERS`. When it is full, who comes from where fewer of them are from
    takes the place of the oldest from where most are; else one that has said nothing for `GRACE`
    gives way, or the newcomer waits in the system's queue or has to come again. So no host keeps
    another one out.

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
        self._relays: Relays | None = None
        self._ready: list[Door] = []
        self._guests: dict[int, Guest] = {}  # the oldest first
        self._hurries = False  # somebody may still be at a door

    def __bool__(self) -> bool:
        return bool(self._ready or self._guests)

    def knocked(self, door: Door) -> None:
        """Somebody is at the door."""
        self._ready.append(door)

    def admit(self) -> None:
        """Accept who knocks, as far as there is room."""
        self._hurries = False
        for _ in range(_AT_ONCE):
            door = next((one for one in self._ready if self._has_room(one)), None)
            if door is None:
                return
            try:
                sock = sockets.accept(door.sock)
            except BlockingIOError:
                self._ready.remove(door)
                self._await(door)
                continue
            except OSError as error:
                if error.errno in _SCARCE:
                    return
                continue  # the connection is gone already
            self._receive(door, sock)
        self._hurries = True

    def _receive(self, door: Door, sock: _socket.socket) -> None:
        channel = Channel(sock)
        if sockets.peer_uid(sock) not in {None, os.geteuid()}:
            channel.say(handshake.refusal("user"))
            channel.close()
            return
        guest = self._seat(channel)
        if guest is None:
            return
        if door.address.off_host:
            guest.route = b""
            guest.hosts = (door.address.dial.host,)
        else:
            roles = self._roles | self._onward()
            self._greet(guest, sockets.channel(sock.getsockname()), roles)

    def take_over(self, fd: int, hosts: tuple[str, ...]) -> None:
        """Go on with a connection that came to this host, for this process."""
        channel = Channel(_socket.socket(fileno=fd))
        channel.sock.setblocking(False)
        guest = self._seat(channel)
        if guest is None:
            return
        guest.hosts = hosts
        try:
            self._let_in(guest)
        except (OSError, SecretError):
            self._turn_away(guest, b"")

    # Who has a place.

    def _seat(self, channel: Channel) -> Guest | None:
        """A guest of this connection; None, and it is closed, where there is no room."""
        now = time.monotonic()
        try:
            source = sockets.peer_host(channel.sock)
        except OSError:  # it has gone
            channel.close()
            return None
        if len(self._guests) >= STRANGERS:
            victim = self._who_gives_way(source, now)
            if victim is None:
                channel.close()
                return None
            self._turn_away(victim, b"")
        guest = Guest(channel, source, now + handshake.SECONDS)
        self._guests[channel.fileno()] = guest
        return guest

    def _has_room(self, door: Door) -> bool:
        """Whether to accept at a door.

        By TCP also where nobody may give way, lest strangers fill the queue; not while those who
        are there all come from one host and have said whom they are for, as when many start there.
        """
        if len(self._guests) < STRANGERS:
            return True
        if door.address.kind == "unix":
            return self._who_gives_way("", time.monotonic()) is not None
        guests = self._guests.values()
        return any(one.mute for one in guests) or len({one.source for one in guests}) > 1

    def _who_gives_way(self, source: str, now: float) -> Guest | None:
        """Whose place one from `source` takes."""
        shares: dict[str, int] = {}
        for guest in self._guests.values():
            shares[guest.source] = shares.get(guest.source, 0) + 1
        most = max(shares.values())
        if shares.get(source, 0) + 1 < most:
            return next(one for one in self._guests.values() if shares[one.source] == most)
        began = now - GRACE + handshake.SECONDS
        return next((one for one in self._guests.values() if one.mute and one.end <= began), None)

    def waits(self) -> Iterator[tuple[int, Guest]]:
        """The descriptors to read, each with its guest."""
        for number, guest in self._guests.items():
            if not guest.waits:
                yield number, guest

    def ends(self, now: float) -> Iterator[float]:
        """When something is due, on the monotonic clock."""
        for guest in self._guests.values():
            yield guest.end
        if self._ready:  # there was no room, or the system lacked something that accept needs
            yield now if self._hurries else now + LONGEST_PAUSE

    def step(self, guest: Guest) -> None:
        """Read what the guest sent; decide when it has proven that it knows the secret."""
        try:
            while self._guests.get(guest.channel.fileno()) is guest and not guest.waits:
                self._step(guest)  # TLS may hold more than the socket has
        except BlockingIOError:
            return
        except HandshakeError as error:
            self._turn_away(guest, error.farewell)
        except (OSError, SecretError):  # also what TLS says of it, which the other side knows
            self._turn_away(guest, b"")

    def _step(self, guest: Guest) -> None:
        if guest.route is not None:
            self._read_route(guest, guest.route)
        elif guest.shaking:
            self._shake(guest)
        elif guest.side is not None:
            guest.channel.send(guest.side.feed(guest.channel.recv(guest.side.need)))
            if guest.side.proven:
                self._decide(guest, guest.side)

    def expire(self, now: float) -> None:
        """Turn away who took too long."""
        for guest in [g for g in self._guests.values() if g.end <= now]:
            self._turn_away(guest, b"")

    def end(self) -> None:
        """Nobody comes any more, and nobody is led on from here; once the gate's thread is gone."""
        if self._relays is not None:
            self._relays.close()

    def close(self) -> None:
        """Turn everybody away."""
        for guest in list(self._guests.values()):
            self._turn_away(guest, b"")

    def leave(self) -> None:
        """Let go of all their sockets, in a fork; TLS may be half through something, and stays."""
        for guest in self._guests.values():
            guest.channel.sock.close()

    # From another host.

    def _read_route(self, guest: Guest, before: bytes) -> None:
        from monarch._link import encryption, route  # noqa: PLC0415 - off this host only

        data = guest.channel.recv(route.SIZE - len(before))
        if not data:
            raise HandshakeError("closed", "the peer closed the connection")
        guest.route = before + data
        if len(guest.route) < route.SIZE:
            start = guest.route[: len(handshake.MAGIC)]
            if not handshake.MAGIC.startswith(start):
                raise HandshakeError("malformed", "who dialled is no process of monarch")
            return
        wanted = route.read(guest.route, encryption.mode())
        guest.route = None
        if wanted is None:
            self._greet(guest, handshake.ON_THE_WAY, self._onward())
        elif wanted in {0, self._identity.own}:
            self._let_in(guest)
        elif self._identity.engine.has_link(wanted):
            self._pass_on(guest, wanted)
        else:
            guest.waits = True
            self._dials.find(wanted, lambda found: self._found(guest, wanted, found=found))

    def _found(self, guest: Guest, wanted: int, *, found: bool) -> None:
        """A process of this host that a guest is for has been sought."""
        if self._guests.get(guest.channel.fileno()) is not guest:
            return  # it has given up
        if found:
            self._pass_on(guest, wanted)
        else:
            self._turn_away(guest, handshake.refusal("gone"))

    def _pass_on(self, guest: Guest, wanted: int) -> None:
        from monarch.errors import FrameError  # noqa: PLC0415 - off this host only

        number = guest.channel.fileno()
        hosts = "\n".join(guest.hosts).encode()
        try:
            theirs = os.dup(number)
        except OSError:  # no descriptor is left for it: who dialled tries again
            self._turn_away(guest, b"")
            return
        del self._guests[number]
        try:
            self._identity.engine.hand_over(wanted, theirs, hosts)
        except FrameError:
            guest.channel.say(handshake.refusal("gone"))
        guest.channel.close()

    def _let_in(self, guest: Guest) -> None:
        """It is for this process."""
        from monarch._link import encryption, route  # noqa: PLC0415 - off this host only

        channel = guest.channel
        if encryption.mode() == route.PLAIN:
            self._greet(guest, handshake.IN_THE_CLEAR, self._roles)
            return
        from monarch._core import TlsStream  # noqa: PLC0415 - as above

        hosts = {*guest.hosts, sockets.plain_host(channel.sock.getsockname()[0])}
        named = [host for host in hosts if host not in {"*", "0.0.0.0", "::"}]  # noqa: S104 - left out
        context = encryption.context(self._identity.secret(), named)
        channel.tls = TlsStream(context, channel.fileno(), True)
        guest.shaking = True

    def _shake(self, guest: Guest) -> None:
        tls = guest.channel.tls
        assert tls is not None  # noqa: S101 - for the type checker
        if tls.handshake() != "done":
            raise BlockingIOError
        guest.shaking = False
        self._greet(guest, tls.binding(), self._roles)

    # The handshake of all links.

    def _onward(self) -> frozenset[int]:
        """The role of who is led on from here: host agents do that."""
        agent = self._identity.role == handshake.HOST
        return frozenset({handshake.WAY}) if agent else frozenset()

    def _greet(self, guest: Guest, channel: bytes, roles: frozenset[int]) -> bool:
        """Begin the handshake; False where it cannot be, and the guest is gone."""
        try:
            held = self._identity.secret()
        except SecretError as error:
            self._guests.pop(guest.channel.fileno(), None)
            guest.channel.close()
            self._tell_once(f"monarch: no process can link to this one: {error}")
            return False
        guest.side = handshake.Listener(
            held, self._identity.own, channel, role=self._identity.role, roles=roles
        )
        return True

    def _decide(self, guest: Guest, side: handshake.Listener) -> None:
        if side.peer_role == handshake.WAY:
            self._lead_on(guest, side)
            return
        peer = side.peer
        engine = self._identity.engine
        going_on = side.peer_role == handshake.GOING_ON
        stands = self._identity.own < peer and self._dials.trying(peer)
        verdict = engine.meet(peer, going_on, self._dials.wants(peer), stands)
        if verdict in {"duplicate", "gone"}:
            self._turn_away(guest, handshake.refusal(verdict))
            return
        guest.channel.send(side.accept())
        del self._guests[guest.channel.fileno()]
        if verdict != "take":
            guest.channel.go_on(engine, peer, again=verdict == "begin")
            return
        if guest.hosts:
            self._identity.far.add(peer)
            if not self._identity.public:
                self._identity.public = sockets.local_url(guest.channel.sock)
        taken = guest.channel.give(engine, peer, session=bool(guest.hosts))
        if taken and self._linked is not None:
            self._linked(peer, side.peer_role)

    def _lead_on(self, guest: Guest, side: handshake.Listener) -> None:
        from monarch._link.relays import Relays  # noqa: PLC0415 - gateways only

        if self._relays is None:
            self._relays = Relays()
        guest.channel.send(side.accept())
        del self._guests[guest.channel.fileno()]
        self._relays.take(guest.channel.sock, side)

    def _turn_away(self, guest: Guest, farewell: bytes) -> None:
        del self._guests[guest.channel.fileno()]
        guest.channel.say(farewell)
        guest.channel.close()

    def _tell_once(self, text: str) -> None:
        if not self._told:
            self._told = True
            os.write(2, f"{text}\n".encode())
