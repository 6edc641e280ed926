"""The links that a process asks others for: tries, pauses and handshakes until one stands.

All of it runs on the gate's thread, which owns the sockets.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import time

from monarch._link import handshake, sockets
from monarch._link.handshake import HandshakeError
from monarch._link.pending import (
    LONGEST_PAUSE,
    close,
    foreign,
    send,
    try_send,
    unreachable,
)
from monarch.errors import LinkError, SecretError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from monarch._link.pending import Dial, Identity

NOTICE_SECONDS = 0.25  # after which it is asked whether who is dialled is there at all
_FINAL = frozenset({"version", "secret", "channel", "identity", "role", "user", "malformed"})


class Dials:
    """Links that are wanted.

    `slow(peer)` is called once for a dial that nobody answers at first; it goes on meanwhile. A
    dial ends in the functions it was given, at most one at a time for each peer.
    """

    def __init__(self, identity: Identity, slow: Callable[[int], None] | None) -> None:
        self._identity = identity
        self._slow = slow
        self._dials: list[Dial] = []
        self.closed = False  # the process ends: nobody is told of faults any more

    def __bool__(self) -> bool:
        return bool(self._dials)

    def begin(self, dial: Dial) -> None:
        """Take up a dial; one to a peer that is dialled already joins the other."""
        same = next((d for d in self._dials if dial.peer and d.peer == dial.peer), None)
        if same is not None:
            same.done += dial.done
            same.until = max(same.until, dial.until)
        else:
            self._dials.append(dial)

    def drop(self, peer: int) -> None:
        """Give up dialling a process that is known to be gone."""
        for dial in [d for d in self._dials if d.peer == peer]:
            self._fail(dial, LinkError("closed", f"proc {peer:016x} is gone"))

    def trying(self, peer: int) -> bool:
        """Whether a socket of a dial to the peer is open."""
        return any(d.peer == peer and d.sock is not None for d in self._dials)

    def waits(self) -> Iterator[tuple[int, int, Dial]]:
        """The descriptors to poll, with the events and the dial of each."""
        for dial in self._dials:
            if dial.sock is not None:
                yield dial.sock.fileno(), select.POLLIN if dial.side else select.POLLOUT, dial

    def ends(self) -> Iterator[float]:
        """When something is due, on the monotonic clock."""
        for dial in self._dials:
            yield dial.end

    def expire(self, now: float) -> None:
        """End the tries that took too long."""
        for dial in [d for d in self._dials if d.sock is not None and d.end <= now]:
            self._retry(
                dial,
                LinkError(
                    "timeout",
                    f"{dial.address} did not answer within {handshake.SECONDS:g} s "
                    "(is its process stopped?)",
                ),
            )

    def close(self) -> None:
        """End all with code "closed"."""
        for dial in list(self._dials):
            self._fail(dial, LinkError("closed", "this process is ending"))

    def knock(self) -> None:
        """Start the tries that are due."""
        now = time.monotonic()
        for dial in [d for d in self._dials if d.sock is None and d.end <= now]:
            if dial.peer and self._identity.engine.has_link(dial.peer):
                self._succeed(dial)
                continue
            try:
                dial.sock, error = sockets.connect(dial.address)
            except OSError as failed:
                self._retry(dial, unreachable(dial.address, failed.errno or 0))
                continue
            dial.end = now + handshake.SECONDS
            if error == 0:
                self._greet(dial)
            elif error != errno.EINPROGRESS:
                self._retry(dial, unreachable(dial.address, error))

    def step(self, dial: Dial) -> None:
        """Go on with a try whose socket is ready."""
        sock, side = dial.sock, dial.side
        if sock is None:
            return
        if side is None:
            error = sockets.pending_error(sock)
            if error:
                self._retry(dial, unreachable(dial.address, error))
            else:
                self._greet(dial)
            return
        try:
            send(sock, side.feed(sock.recv(side.need)))
        except BlockingIOError:
            return
        except HandshakeError as error:
            if error.farewell:
                try_send(sock, error.farewell)
            named = LinkError(error.code, f"{dial.address}: {error}")
            if error.code in _FINAL:
                self._fail(dial, named)
            else:
                self._retry(dial, named)
            return
        except OSError as error:
            self._retry(dial, unreachable(dial.address, error.errno or 0))
            return
        if side.peer and not dial.peer:
            dial.peer = side.peer
        if self._identity.engine.has_link(dial.peer):
            self._succeed(dial)
        elif side.done:
            dial.sock = None
            self._identity.engine.add_link(side.peer, sock.detach())
            self._succeed(dial)

    def end(self, dial: Dial, error: LinkError | None) -> None:
        """Tell who asked for the dial how it ended."""
        for done in dial.done:
            try:
                done(dial.peer, error)
            except Exception as raised:  # noqa: BLE001 - other dials have to go on
                if not self.closed:
                    sys.excepthook(type(raised), raised, raised.__traceback__)

    def _greet(self, dial: Dial) -> None:
        """The socket is connected: begin the handshake."""
        sock = dial.sock
        assert sock is not None  # noqa: S101 - for the type checker
        try:
            uid = sockets.peer_uid(sock)
            if uid not in {None, os.geteuid()}:
                self._fail(dial, foreign(dial.address, uid))
                return
            dial.side = handshake.Dialer(
                self._identity.secret(),
                self._identity.own,
                sockets.channel(sock.getpeername()),
                role=dial.role,
                peer=dial.peer,
            )
            send(sock, dial.side.start())
        except SecretError as error:
            self._fail(dial, LinkError("secret", f"{dial.address}: {error}"))
        except OSError as error:
            self._retry(dial, unreachable(dial.address, error.errno or 0))

    def _retry(self, dial: Dial, error: LinkError) -> None:
        now = time.monotonic()
        if now >= dial.until:
            self._fail(dial, error)
            return
        close(dial)
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
