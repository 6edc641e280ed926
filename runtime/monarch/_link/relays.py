"""Connections that pass through a host agent on the way to another host (see `way`).

A thread of its own passes the bytes, and lives only while there are any such connections.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from _thread import allocate_lock

from monarch._link import handshake, sockets, way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from threading import Thread

    from monarch._link.address import Address

_AHEAD = 256 * 1024  # bytes that one side may be ahead of what the other has taken
_CHUNK = 128 * 1024
_CONNECT_SECONDS = 3.0  # less than who asked waits for an answer


class Relays:
    """What this host agent leads on to other hosts."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._asked: list[_Relay] = []
        self._thread: Thread | None = None
        self._closed = False
        self._wake = os.pipe()
        self._relays: set[_Relay] = set()
        self._ends: dict[int, _End] = {}
        self._poller = select.poll()
        self._poller.register(self._wake[0], select.POLLIN)

    def take(self, sock: socket, side: handshake.Listener) -> None:
        """Lead a connection, whose peer has proven itself to `side`, where it says next."""
        from threading import Thread  # noqa: PLC0415 - most processes lead nobody anywhere

        relay = _Relay(sock, side)
        with self._lock:
            closed = self._closed
            if not closed:
                first = not self._asked
                self._asked.append(relay)
                if self._thread is None:
                    self._thread = Thread(target=self._run, name="monarch-ways", daemon=True)
                    self._thread.start()
                elif first:  # one byte until it looks: a pipe that is full would block
                    os.write(self._wake[1], b"\0")
        if closed:
            sock.close()

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            self._closed = True
            thread = self._thread
            os.write(self._wake[1], b"\0")
        if thread is not None:
            thread.join()
        for number in self._wake:
            os.close(number)

    # What follows runs on the thread.

    def _run(self) -> None:
        while self._take_asked():
            now = time.monotonic()
            late = min((r.until for r in self._relays if r.until), default=None)
            wait = None if late is None else max(0.0, late - now) * 1000 + 1
            for number, _ in self._poller.poll(wait):
                if number == self._wake[0]:
                    os.read(number, 4096)
                elif number in self._ends:
                    self._step(self._ends[number])
            now = time.monotonic()
            for relay in [r for r in self._relays if r.until and r.until <= now]:
                relay.near.say(handshake.refusal("unreachable"))
                self._close(relay)

    def _take_asked(self) -> bool:
        with self._lock:
            asked, self._asked = self._asked, []
            idle = not (asked or self._relays)
            if idle or self._closed:
                self._thread = None
            closed = self._closed
        for relay in asked:
            self._relays.add(relay)
            self._watch(relay.near)
        if closed:
            for relay in list(self._relays):
                self._close(relay)
        return not (idle or closed)

    def _step(self, end: _End) -> None:
        relay = end.relay
        try:
            if relay.target is not None:
                self._read_target(relay, relay.target)
            elif relay.until:
                self._connected(relay)
            else:
                self._flush(end)
                self._pass(end)
        except BlockingIOError:
            return
        except handshake.HandshakeError as error:
            end.say(error.farewell)
            self._close(relay)
        except OSError:
            self._close(relay)

    def _read_target(self, relay: _Relay, before: bytes) -> None:
        data = relay.near.sock.recv(way.TARGET_SIZE - len(before))
        if not data:
            raise ConnectionResetError
        relay.target = before + data
        if len(relay.target) < way.TARGET_SIZE:
            return
        address = way.read_target(relay.side, relay.target)
        relay.target = None
        relay.until = time.monotonic() + _CONNECT_SECONDS
        self._watch(relay.near)
        self._connect(relay, address)

    def _connect(self, relay: _Relay, address: Address) -> None:
        sock, error = sockets.connect(address)
        relay.far = _End(sock, relay)
        if error not in {0, errno.EINPROGRESS}:
            self._refuse(relay, error)
            return
        self._watch(relay.far)

    def _connected(self, relay: _Relay) -> None:
        far = relay.far
        assert far is not None  # noqa: S101 - only its end is watched meanwhile
        error = sockets.pending_error(far.sock)
        if error:
            self._refuse(relay, error)
            return
        relay.until = 0.0
        relay.near.sock.send(way.opened())
        for end in (relay.near, far):
            sockets.keep_alive(end.sock)
            self._watch(end)

    def _refuse(self, relay: _Relay, error: int) -> None:
        code = "refused" if error == errno.ECONNREFUSED else "unreachable"
        relay.near.say(handshake.refusal(code))
        self._close(relay)

    def _pass(self, end: _End) -> None:
        """Take what came from one side to the other, as far as that is not behind."""
        other = end.other
        if end.ended or len(other.pending) >= _AHEAD:
            return
        data = end.sock.recv(_CHUNK)
        if data:
            other.pending += data
            self._flush(other)
            return
        end.ended = True
        if other.pending:
            self._watch(end)
        else:
            self._close(end.relay)

    def _flush(self, end: _End) -> None:
        if end.pending:
            with contextlib.suppress(BlockingIOError):
                del end.pending[: end.sock.send(end.pending)]
            if end.other.ended and not end.pending:
                self._close(end.relay)
                return
        self._watch(end)
        self._watch(end.other)

    def _watch(self, end: _End) -> None:
        """Poll an end for what it is waited for."""
        relay = end.relay
        if relay.target is not None:
            wanted = select.POLLIN
        elif relay.until:
            wanted = 0 if end is relay.near else select.POLLOUT
        else:
            reads = not end.ended and len(end.other.pending) < _AHEAD
            wanted = (select.POLLIN if reads else 0) | (select.POLLOUT if end.pending else 0)
        if wanted == end.wanted:
            return
        number = end.sock.fileno()
        if wanted:
            self._poller.register(number, wanted)
            self._ends[number] = end
        else:
            self._forget(number)
        end.wanted = wanted

    def _forget(self, number: int) -> None:
        if self._ends.pop(number, None) is not None:
            self._poller.unregister(number)

    def _close(self, relay: _Relay) -> None:
        self._relays.discard(relay)
        for end in (relay.near, relay.far):
            if end is not None and end.sock.fileno() >= 0:
                self._forget(end.sock.fileno())
                end.sock.close()


class _End:
    """One side of a relay. `pending` is what it has not taken yet; `ended`: nothing more comes."""

    __slots__ = ("ended", "pending", "relay", "sock", "wanted")

    def __init__(self, sock: socket, relay: _Relay) -> None:
        self.sock = sock
        self.relay = relay
        self.pending = bytearray()
        self.ended = False
        self.wanted = 0

    @property
    def other(self) -> _End:
        relay = self.relay
        found = relay.far if self is relay.near else relay.near
        assert found is not None  # noqa: S101 - both are there once bytes pass
        return found

    def say(self, data: bytes) -> None:
        """Last words, to a peer that may be gone."""
        try:
            self.sock.send(data)
        except OSError:
            return


class _Relay:
    """One connection that is led on.

    `target` is what has come of where it is to go, None once that is known; `until` when it has to
    be connected there, 0 once it is.
    """

    __slots__ = ("far", "near", "side", "target", "until")

    def __init__(self, sock: socket, side: handshake.Listener) -> None:
        self.near = _End(sock, self)
        self.far: _End | None = None
        self.side = side
        self.target: bytes | None = b""
        self.until = time.monotonic() + handshake.SECONDS
