"""The links that a process asks others for: tries, pauses and handshakes until one stands.

All of it runs on the gate's thread, which owns the sockets.
"""

from __future__ import annotations

import _socket
import errno
import os
import select
import sys
import time

from monarch._link import handshake, sockets
from monarch._link.address import of_proc, parse
from monarch._link.channel import Channel
from monarch._link.handshake import HandshakeError
from monarch._link.pending import LONGEST_PAUSE, Dial, close, foreign, unreachable
from monarch.errors import LinkError, SecretError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from monarch._link.address import Address
    from monarch._link.pending import Identity

NOTICE_SECONDS = 0.25  # after which it is asked whether who is dialled is there at all
DIRECT_SECONDS = 0.5  # for a connection, before the gateway is asked for a way
_FIND_SECONDS = 0.5  # to find a process of this host that is dialled from another
_FINAL = frozenset(
    {
        *("version", "secret", "channel", "identity", "role", "user", "malformed"),
        *("clear", "encrypted", "certificate", "tunnel"),
    }
)
_AWAY = frozenset({"unreachable", "timeout"})
# What an address of the gateway's network may end with here, where it is another machine's.
_SOMEBODY_ELSE = _FINAL | {"closed", "tls"}


class Dials:
    """Links that are wanted.

    `slow(peer)` is called once for a dial that nobody answers at first, `absent(peer)` for one to a
    process of this host that does not listen; both go on meanwhile. A dial ends in the functions it
    was given, at most one at a time for each peer.
    """

    def __init__(
        self,
        identity: Identity,
        slow: Callable[[int], None] | None,
        absent: Callable[[int], None] | None,
    ) -> None:
        self._identity = identity
        self._slow = slow
        self._absent = absent
        self._dials: list[Dial] = []
        self.closed = False  # the process ends: nobody is told of faults any more

    def __bool__(self) -> bool:
        return bool(self._dials)

    def begin(self, dial: Dial) -> None:
        """Take up a dial; one to a peer that is dialled already joins the other."""
        same = next((d for d in self._dials if dial.peer and d.peer == dial.peer), None)
        if same is None:
            self._dials.append(dial)
            return
        same.done += dial.done
        same.until = max(same.until, dial.until)
        if dial.address.off_host and not same.address.off_host:  # it was found elsewhere meanwhile
            same.address = dial.address
            if same.channel is None:
                same.end = 0.0

    def find(self, peer: int, done: Callable[[bool], object]) -> None:
        """Dial a process of this host; `done(whether it is there)`."""

        def ended(_peer: int, error: LinkError | None) -> None:
            done(error is None)

        until = time.monotonic() + _FIND_SECONDS
        self.begin(Dial(parse(of_proc(peer)), peer, self._identity.role, until, ended))

    def drop(self, peer: int) -> None:
        """Give up dialling a process that is known to be gone."""
        for dial in [d for d in self._dials if d.peer == peer]:
            self._fail(dial, _lost(dial) if dial.address.off_host else _gone(peer))

    def wants(self, peer: int) -> bool:
        """Whether the peer is dialled, be it between two tries."""
        return any(d.peer == peer for d in self._dials)

    def trying(self, peer: int) -> bool:
        """Whether a socket of a dial to the peer is open."""
        return any(d.peer == peer and d.channel is not None for d in self._dials)

    def waits(self) -> Iterator[tuple[int, int, Dial]]:
        """The descriptors to poll, with the events and the dial of each."""
        for dial in self._dials:
            if dial.channel is not None:
                reads = dial.side is not None or dial.shaking or dial.asker is not None
                yield dial.channel.fileno(), select.POLLIN if reads else select.POLLOUT, dial

    def ends(self) -> Iterator[float]:
        """When something is due, on the monotonic clock."""
        for dial in self._dials:
            yield dial.end

    def expire(self, now: float) -> None:
        """End the tries that took too long."""
        for dial in [d for d in self._dials if d.channel is not None and d.end <= now]:
            self._retry(
                dial,
                LinkError(
                    "timeout",
                    f"{self._where(dial)} did not answer within {now - dial.tried:.1f} s "
                    "(is its process stopped, or the network between cut?)",
                ),
            )

    def close(self) -> None:
        """End all with code "closed"."""
        for dial in list(self._dials):
            self._fail(dial, LinkError("closed", "this process is ending"))

    def leave(self) -> None:
        """Let go of their sockets, in a fork."""
        for _fd, _events, dial in self.waits():
            assert dial.channel is not None  # noqa: S101 - for the type checker
            dial.channel.sock.close()

    def knock(self) -> None:
        """Start the tries that are due."""
        now = time.monotonic()
        for dial in [d for d in self._dials if d.channel is None and d.end <= now]:
            if self._is_done(dial):
                self._succeed(dial)
                continue
            try:
                sock, error = sockets.connect(self._way(dial))
            except OSError as failed:
                self._retry(dial, unreachable(self._where(dial), failed.errno or 0))
                continue
            dial.channel = Channel(sock)
            dial.tried = now
            other = self._gateway(dial) is not None and not dial.led
            dial.end = now + (DIRECT_SECONDS if other else handshake.SECONDS)
            if error == 0:
                self._greet(dial)
            elif error != errno.EINPROGRESS:
                self._retry(dial, unreachable(self._where(dial), error))

    def step(self, dial: Dial) -> None:
        """Go on with a try whose socket is ready."""
        channel = dial.channel
        if channel is None:
            return
        if dial.side is None and not dial.shaking and dial.asker is None:
            error = sockets.pending_error(channel.sock)
            if error:
                dial.refused = error == errno.ECONNREFUSED and not dial.led
                self._retry(dial, unreachable(self._where(dial), error))
            else:
                self._greet(dial)
            return
        try:
            while dial.channel is channel:
                self._step(dial, channel)  # TLS may hold more than the socket has
        except BlockingIOError:
            return
        except HandshakeError as error:
            channel.say(error.farewell)
            dial.refused = error.code == "refused"
            code = "unreachable" if dial.refused else error.code
            self._go_on(dial, LinkError(code, f"{self._where(dial)}: {error}"))
        except LinkError as error:
            self._go_on(dial, self._tls_error(dial, channel, error))
        except OSError as error:
            self._retry(dial, unreachable(self._where(dial), error.errno or 0))

    def end(self, dial: Dial, error: LinkError | None) -> None:
        """Tell who asked for the dial how it ended."""
        for done in dial.done:
            try:
                done(dial.peer, error)
            except Exception as raised:  # noqa: BLE001 - other dials have to go on
                if not self.closed:
                    sys.excepthook(type(raised), raised, raised.__traceback__)

    def _gateway(self, dial: Dial) -> Address | None:
        """The host agent by which a dial may go as well."""
        gateway, address = self._identity.gateway, dial.address
        if gateway is None or not address.off_host or address.tunnel:
            return None
        return None if address.url in {gateway.url, *self._identity.ways} else gateway

    def _way(self, dial: Dial) -> Address:
        """What to connect to."""
        gateway = self._gateway(dial)
        if gateway is not None and dial.address.url in self._identity.led and dial.aside is None:
            dial.led = True  # as before
        if gateway is not None and dial.led:
            return gateway
        dial.led = False
        return self._identity.ways.get(dial.address.url, dial.address)

    def _where(self, dial: Dial) -> str:
        """What is dialled, in words."""
        if dial.led:
            return f"{dial.address} (by way of {self._identity.gateway})"
        return str(dial.address)

    def _step(self, dial: Dial, channel: Channel) -> None:
        if dial.asker is not None:
            channel.send(dial.asker.feed(channel.recv(dial.asker.need)))
            if dial.asker.open:
                dial.asker = None
                self._set_out(dial, channel)
            return
        if dial.shaking:
            self._shake(dial, channel)
            return
        side = dial.side
        assert side is not None  # noqa: S101 - for the type checker
        channel.send(side.feed(channel.recv(side.need)))
        if side.peer and not dial.peer:
            dial.peer = side.peer
        if side.done:
            (self._identity.led.add if dial.led else self._identity.led.discard)(dial.address.url)
        if self._is_done(dial):
            self._succeed(dial)
        elif side.done and dial.role == handshake.GOING_ON:
            dial.channel = None
            if channel.go_on(self._identity.engine, side.peer):
                self._succeed(dial)
            else:
                self._fail(dial, LinkError("closed", f"the session with {dial.address} has ended"))
        elif side.done:
            dial.channel = None
            if dial.address.off_host:
                self._identity.far.add(side.peer)
            far = dial.address.off_host
            if channel.give(self._identity.engine, side.peer, session=far):
                self._succeed(dial)
            else:
                self._fail(dial, _lost(dial))

    def _is_done(self, dial: Dial) -> bool:
        """Whether there is what is dialled for, by whosever doing."""
        engine = self._identity.engine
        if dial.role == handshake.GOING_ON:
            return not engine.is_broken(dial.peer)
        return bool(dial.peer) and engine.has_link(dial.peer)

    def _greet(self, dial: Dial) -> None:
        """The socket is connected: begin the handshake, or what comes before it off this host."""
        channel = dial.channel
        assert channel is not None  # noqa: S101 - for the type checker
        dial.end = time.monotonic() + handshake.SECONDS
        try:
            uid = sockets.peer_uid(channel.sock)
            if uid not in {None, os.geteuid()}:
                self._fail(dial, foreign(dial.address, uid))
            elif dial.led:
                self._ask(dial, channel)
            elif dial.address.off_host:
                self._set_out(dial, channel)
            else:
                self._begin(dial, channel, sockets.channel(channel.sock.getpeername()))
        except SecretError as error:
            self._fail(dial, LinkError("secret", f"{dial.address}: {error}"))
        except LinkError as error:
            if channel.tls is None:
                self._fail(dial, LinkError(error.code, f"{dial.address}: {error}"))
                return
            self._go_on(dial, self._tls_error(dial, channel, error))
        except OSError as error:
            self._retry(dial, unreachable(self._where(dial), error.errno or 0))

    def _ask(self, dial: Dial, channel: Channel) -> None:
        """Ask the gateway for the way; what comes then is as without it."""
        from monarch._link import route, way  # noqa: PLC0415 - off this host only

        gateway = self._identity.gateway
        assert gateway is not None  # noqa: S101 - for the type checker
        secret = self._identity.secret()
        if gateway.off_host:
            secret.check_given(gateway)
            channel.send(route.route(0, route.ONWARD))
            binding = handshake.ON_THE_WAY
        else:
            binding = sockets.channel(channel.sock.getpeername())
        dial.asker = way.Asker(secret, self._identity.own, binding, dial.address)
        channel.send(dial.asker.start())

    def _set_out(self, dial: Dial, channel: Channel) -> None:
        """Say whom the connection is for; then go on with TLS."""
        from monarch._link import encryption, route  # noqa: PLC0415 - off this host only

        secret = self._identity.secret()
        secret.check_given(dial.address)
        mode = encryption.mode()
        channel.send(route.route(dial.peer, mode))
        if mode == route.PLAIN:
            self._begin(dial, channel, handshake.IN_THE_CLEAR)
            return
        from monarch._core import TlsStream  # noqa: PLC0415 - as above

        own = sockets.own_host(channel.sock)
        context = encryption.context(secret, [own])
        host = "" if dial.address.tunnel else dial.address.host
        channel.tls = TlsStream(context, channel.fileno(), False, host)
        dial.shaking = True
        if channel.tls.handshake() == "done":  # the answer was that quick
            dial.shaking = False
            self._begin(dial, channel, channel.tls.binding())

    def _shake(self, dial: Dial, channel: Channel) -> None:
        from monarch._link.route import refused  # noqa: PLC0415 - off this host only

        tls = channel.tls
        assert tls is not None  # noqa: S101 - for the type checker
        first = channel.sock.recv(8, _socket.MSG_PEEK)
        if not first:
            raise ConnectionResetError(errno.ECONNRESET, "")
        refusal = refused(first) if len(first) == 8 else None
        if refusal is not None:
            raise refusal
        if tls.handshake() != "done":
            raise BlockingIOError
        dial.shaking = False
        self._begin(dial, channel, tls.binding())

    def _begin(self, dial: Dial, channel: Channel, binding: bytes) -> None:
        dial.side = handshake.Dialer(
            self._identity.secret(), self._identity.own, binding, role=dial.role, peer=dial.peer
        )
        channel.send(dial.side.start())

    def _tls_error(self, dial: Dial, channel: Channel, error: LinkError) -> LinkError:
        from monarch._link import encryption  # noqa: PLC0415 - off this host only

        verified = 0 if channel.tls is None else channel.tls.verified
        return encryption.explained(error, verified, str(dial.address), self._identity.secret())

    def _go_on(self, dial: Dial, error: LinkError) -> None:
        """After what was said, or not understood, by who answered: not who is meant, perhaps."""
        other = not dial.led and self._gateway(dial) is not None
        (self._fail if error.code in _FINAL and not other else self._retry)(dial, error)

    def _retry(self, dial: Dial, error: LinkError) -> None:
        now = time.monotonic()
        # A host that refuses has nobody there any more: it is as quick to say so as to take a link.
        over = dial.role == handshake.GOING_ON and (error.code == "gone" or dial.refused)
        away = error.code in _AWAY or (not dial.led and error.code in _SOMEBODY_ELSE)
        if away and self._gateway(dial) is not None:
            known = dial.address.url in self._identity.led
            over = over and dial.led == known
            before, dial.aside = dial.aside, error
            if before is not None:  # the try that went the other way
                error = LinkError(error.code, f"{error}; {before}")
            dial.led = not dial.led
        if now >= dial.until or over:
            self._fail(dial, error)
            return
        close(dial)
        if not dial.absent and not dial.address.off_host and error.code == "unreachable":
            dial.absent = True
            if self._absent is not None and dial.peer:
                self._absent(dial.peer)
        if not dial.noticed and now - dial.began > NOTICE_SECONDS:
            dial.noticed = True
            if self._slow is not None and dial.peer:
                self._slow(dial.peer)
        dial.end = min(now + dial.pause, dial.until)
        dial.pause = min(dial.pause * 2, LONGEST_PAUSE)

    def _fail(self, dial: Dial, error: LinkError) -> None:
        close(dial)
        self._dials.remove(dial)
        self.end(dial, error)

    def _succeed(self, dial: Dial) -> None:
        close(dial)
        self._dials.remove(dial)
        self.end(dial, None)


def _lost(dial: Dial) -> LinkError:
    told = f"{dial.address} is a process that was lost to this one, and stays lost"
    return LinkError("closed", told)


def _gone(peer: int) -> LinkError:
    return LinkError("closed", f"proc {peer:016x} is gone")
