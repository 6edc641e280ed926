"""The gate of a process: it listens, dials, and hands sockets to the engine once authenticated.

A thread of its own drives all handshakes and lives only while there are any, so that neither the
control thread nor an idle process pays for them. Decisions are made on that thread alone. When two
processes dial each other at once, the dial of the one with the smaller proc id stands.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import time
from _thread import allocate_lock, get_ident

from monarch._link import handshake, sockets
from monarch._link.handshake import CLIENT, HOST, PROC, HandshakeError
from monarch._link.pending import (
    LONGEST_PAUSE,
    Dial,
    Door,
    Guest,
    close,
    foreign,
    send,
    try_send,
    unreachable,
)
from monarch.errors import LinkError, SecretError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread
    from typing import Protocol

    from monarch._link.address import Address
    from monarch._link.pending import Done
    from monarch._link.secret import Secret

    class Engine(Protocol):
        """What the gate asks of the engine, from any thread."""

        def add_link(self, peer: int, fd: int) -> None: ...
        def has_link(self, peer: int) -> bool: ...

    class Watch(Protocol):
        """Calls the handler once, when the descriptor is readable."""

        def __call__(self, fd: int, handler: Callable[[], object], /) -> object: ...


STRANGERS = 64  # connections that have not authenticated yet; more wait in the system's queue
DIAL_SECONDS = 30.0
NOTICE_SECONDS = 0.25  # after which it is asked whether who is dialled is there at all
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_FINAL = frozenset({"version", "secret", "channel", "identity", "role", "user", "malformed"})


class Gate:
    """Listens and dials for the process `own`.

    `slow(peer)` is called once for a dial that nobody answers at first; it goes on meanwhile.
    `linked(peer, role)` is called once the engine has a link that the peer asked for. A dial ends
    in the `done(peer, error)` it was given. All of these run on the gate's thread.
    """

    def __init__(
        self,
        engine: Engine,
        own: int,
        secret: Callable[[], Secret],
        watch: Watch,
        unwatch: Callable[[int], object],
        *,
        role: int = PROC,
        roles: frozenset[int] = frozenset({PROC, CLIENT, HOST}),
        linked: Callable[[int, int], None] | None = None,
        slow: Callable[[int], None] | None = None,
    ) -> None:
        self._engine = engine
        self._own = own
        self._secret = secret
        self._watch = watch
        self._unwatch = unwatch
        self.role = role  # that this process has in links that others ask for
        self._roles = roles
        self._linked = linked
        self._slow = slow
        self._doors: list[Door] = []
        self._lock = allocate_lock()
        self._thread: Thread | None = None
        self._wake = os.pipe()  # made before descriptors can run out
        self._closed = False
        self._told = False
        self._asked: list[Door | Dial | int] = []  # from other threads; an int: forget that peer
        self._ready: list[Door] = []
        self._guests: dict[int, Guest] = {}
        self._dials: list[Dial] = []

    def listen(self, address: Address) -> Address:
        """Listen there as well; the address with its port filled in.

        Raises:
            AddressError: the address cannot be listened on.

        """
        sock, bound = sockets.listen(address)
        door = Door(sock, bound)
        self._doors.append(door)
        self._await(door)
        return bound

    def dial(
        self,
        address: Address,
        done: Done,
        *,
        peer: int = 0,
        role: int | None = None,
        seconds: float = DIAL_SECONDS,
    ) -> None:
        """Make a link to the process that listens there, or will within `seconds`.

        `peer` is the proc id it must have, 0 for any. `done(peer, None)` tells that the engine has
        the link, `done(peer, LinkError)` why there is none.
        """
        until = time.monotonic() + seconds
        self._ask(Dial(address, peer, self.role if role is None else role, until, done))

    def connect(
        self, address: Address, *, peer: int = 0, role: int | None = None, seconds: float
    ) -> int:
        """Dial and wait; the proc id of who listens there.

        Raises:
            LinkError: there is no link after `seconds`, or the other side refuses.

        """
        from threading import Event  # noqa: PLC0415 - what starts a process does without

        ended = Event()
        result: list[tuple[int, LinkError | None]] = []

        def done(found: int, error: LinkError | None) -> None:
            result.append((found, error))
            ended.set()

        self.dial(address, done, peer=peer, role=role, seconds=seconds)
        ended.wait()
        found, error = result[0]
        if error is not None:
            raise error
        return found

    def forget(self, peer: int) -> None:
        """Give up dialling a process that is known to be gone."""
        with self._lock:
            dials = self._thread is not None
        if dials:
            self._ask(peer)

    def close(self) -> None:
        """Stop listening, refuse who is at the door, end every dial with code "closed"."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            os.write(self._wake[1], b"\0")
        if thread is not None and thread.ident != get_ident():
            thread.join()
        for door in self._doors:
            self._unwatch(door.sock.fileno())
            sockets.remove(door.sock, door.address)
        self._doors.clear()
        for number in self._wake:
            os.close(number)

    def _await(self, door: Door) -> None:
        self._watch(door.sock.fileno(), lambda: self._ask(door))

    def _ask(self, what: Door | Dial | int) -> None:
        with self._lock:
            closed = self._closed
            if not closed:
                self._asked.append(what)
                if self._thread is None:
                    from threading import Thread  # noqa: PLC0415 - as above

                    self._thread = Thread(target=self._run, name="monarch-gate", daemon=True)
                    self._thread.start()
                else:
                    os.write(self._wake[1], b"\0")
        if closed and isinstance(what, Dial):
            self._end(what, LinkError("closed", "this process is ending"))

    # What follows runs on the gate's thread.

    def _run(self) -> None:
        wake = self._wake[0]
        try:
            while self._take_asked():
                self._admit()
                self._knock()
                self._poll(wake)
                self._expire()
        finally:
            with self._lock:
                if self._thread is not None and self._thread.ident == get_ident():
                    self._thread = None

    def _take_asked(self) -> bool:
        """Take up what was asked; False, and no thread any more, once nothing is left to do."""
        with self._lock:
            asked, self._asked = self._asked, []
            idle = not (asked or self._ready or self._guests or self._dials)
            if idle or self._closed:
                self._thread = None
                closed = self._closed
            else:
                closed = False
        for what in asked:
            if isinstance(what, Door):
                self._ready.append(what)
            elif isinstance(what, Dial):
                self._begin(what)
            else:
                self._drop(what)
        if closed:
            for guest in list(self._guests.values()):
                self._turn_away(guest, b"")
            for dial in list(self._dials):
                self._fail(dial, LinkError("closed", "this process is ending"))
        return not (idle or closed)

    def _begin(self, dial: Dial) -> None:
        same = next((d for d in self._dials if dial.peer and d.peer == dial.peer), None)
        if same is not None:
            same.done += dial.done
            same.until = max(same.until, dial.until)
        else:
            self._dials.append(dial)

    def _drop(self, peer: int) -> None:
        for dial in [d for d in self._dials if d.peer == peer]:
            self._fail(dial, LinkError("closed", f"proc {peer:016x} is gone"))

    def _poll(self, wake: int) -> None:
        poller = select.poll()
        poller.register(wake, select.POLLIN)
        for number in self._guests:
            poller.register(number, select.POLLIN)
        dials = {}
        for dial in self._dials:
            if dial.sock is not None:
                dials[dial.sock.fileno()] = dial
                poller.register(dial.sock, select.POLLIN if dial.side else select.POLLOUT)
        now = time.monotonic()
        ends = [guest.end for guest in self._guests.values()] + [d.end for d in self._dials]
        if self._ready and len(self._guests) < STRANGERS:
            ends.append(now + LONGEST_PAUSE)  # the system lacked something that accept needs
        for number, _ in poller.poll(max(0.0, min(ends, default=now) - now) * 1000 + 1):
            if number == wake:
                os.read(wake, 4096)
            elif number in dials:
                self._step_dial(dials[number])
            elif number in self._guests:
                self._step_guest(self._guests[number])

    def _expire(self) -> None:
        now = time.monotonic()
        for guest in [g for g in self._guests.values() if g.end <= now]:
            self._turn_away(guest, b"")
        for dial in [d for d in self._dials if d.sock is not None and d.end <= now]:
            self._retry(
                dial,
                LinkError(
                    "timeout",
                    f"{dial.address} did not answer within {handshake.SECONDS:g} s "
                    "(is its process stopped?)",
                ),
            )

    def _admit(self) -> None:
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
                held = self._secret()
            except SecretError as error:
                sock.close()
                self._tell_once(f"monarch: no process can link to this one: {error}")
                continue
            side = handshake.Listener(
                held,
                self._own,
                sockets.channel(sock.getsockname()),
                role=self.role,
                roles=self._roles,
            )
            end = time.monotonic() + handshake.SECONDS
            self._guests[sock.fileno()] = Guest(sock, side, end)

    def _step_guest(self, guest: Guest) -> None:
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

    def _decide(self, guest: Guest) -> None:
        peer = guest.side.peer
        dialled = any(d.peer == peer and d.sock is not None for d in self._dials)
        if self._engine.has_link(peer) or (dialled and self._own < peer):
            self._turn_away(guest, handshake.refusal("duplicate"))
            return
        try:
            send(guest.sock, guest.side.accept())
        except OSError:
            self._turn_away(guest, b"")
            return
        del self._guests[guest.sock.fileno()]
        self._engine.add_link(peer, guest.sock.detach())
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

    def _knock(self) -> None:
        """Start the tries that are due."""
        now = time.monotonic()
        for dial in [d for d in self._dials if d.sock is None and d.end <= now]:
            if dial.peer and self._engine.has_link(dial.peer):
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
                self._secret(),
                self._own,
                sockets.channel(sock.getpeername()),
                role=dial.role,
                peer=dial.peer,
            )
            send(sock, dial.side.start())
        except SecretError as error:
            self._fail(dial, LinkError("secret", f"{dial.address}: {error}"))
        except OSError as error:
            self._retry(dial, unreachable(dial.address, error.errno or 0))

    def _step_dial(self, dial: Dial) -> None:
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
        if self._engine.has_link(dial.peer):
            self._succeed(dial)
        elif side.done:
            dial.sock = None
            self._engine.add_link(side.peer, sock.detach())
            self._succeed(dial)

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
        self._end(dial, error)

    def _succeed(self, dial: Dial) -> None:
        close(dial)
        self._dials.remove(dial)
        self._end(dial, None)

    def _end(self, dial: Dial, error: LinkError | None) -> None:
        for done in dial.done:
            try:
                done(dial.peer, error)
            except Exception as raised:  # noqa: BLE001 - other dials have to go on
                if not self._closed:
                    sys.excepthook(type(raised), raised, raised.__traceback__)

    def _tell_once(self, text: str) -> None:
        if not self._told:
            self._told = True
            os.write(2, f"{text}\n".encode())
