"""The gate of a process: it listens, dials, and hands sockets to the engine once authenticated.

A thread of its own drives all handshakes and lives only while there are any, so that neither the
control thread nor an idle process pays for them. Decisions are made on that thread alone: `Guests`
for who comes in, `Dials` for who is asked.
"""

from __future__ import annotations

import os
import select
import time
from _thread import allocate_lock, get_ident

from monarch._link import sockets
from monarch._link.dials import Dials
from monarch._link.guests import Guests
from monarch._link.handshake import CLIENT, GOING_ON, HOST, PROC
from monarch._link.pending import Dial, Door, Guest, Identity
from monarch.errors import LinkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread
    from typing import Protocol

    from monarch._link.address import Address
    from monarch._link.pending import Done, Engine
    from monarch._link.secret import Secret

    Handed = tuple[int, tuple[str, ...]]

    class Watch(Protocol):
        """Calls the handler once, when the descriptor is readable."""

        def __call__(self, fd: int, handler: Callable[[], object], /) -> object: ...


DIAL_SECONDS = 30.0


class Gate:
    """Listens and dials for the process `own`.

    `slow(peer)` is called once for a dial that nobody answers at first, `absent(peer)` for one to a
    process that does not listen on this host; both go on meanwhile.
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
        roles: frozenset[int] = frozenset({PROC, CLIENT, HOST, GOING_ON}),
        linked: Callable[[int, int], None] | None = None,
        slow: Callable[[int], None] | None = None,
        absent: Callable[[int], None] | None = None,
    ) -> None:
        self._watch = watch
        self._unwatch = unwatch
        self._doors: list[Door] = []
        self._lock = allocate_lock()
        self._thread: Thread | None = None
        self._wake = os.pipe()  # made before descriptors can run out
        self._closed = False
        self._asked: list[Door | Dial | int | Handed] = []  # an int: forget that peer
        self._identity = Identity(engine, own, secret, role)
        self._dials = Dials(self._identity, slow, absent)
        self._guests = Guests(self._identity, roles, self._await, linked, self._dials)

    @property
    def role(self) -> int:
        """The role of this process in links that others ask for."""
        return self._identity.role

    @role.setter
    def role(self, role: int) -> None:
        self._identity.role = role

    @property
    def public(self) -> str:
        """Where other hosts reach the processes of this one; empty where they do not."""
        return self._identity.public

    @public.setter
    def public(self, url: str) -> None:
        self._identity.public = url

    @property
    def gateway(self) -> str:
        """The address of the host agent by which others are reached; empty without one."""
        found = self._identity.gateway
        return "" if found is None else found.url

    def go_by(self, gateway: Address) -> None:
        """Reach other hosts, where they are not reached from here, by the agent at `gateway`."""
        self._identity.gateway = gateway

    def lead(self, url: str, way: Address | None) -> None:
        """Reach the address of this URL by way of a tunnel that listens at `way`, None for no more.

        The links are those to the address all the same: it is what certificates are for, and what
        others are told.
        """
        if way is None:
            self._identity.ways.pop(url, None)
        else:
            self._identity.ways[url] = way

    def is_far(self, peer: int) -> bool:
        """Whether a link to this peer, that was made here, is one between hosts."""
        return peer in self._identity.far

    def listen(self, address: Address) -> Address:
        """Listen there as well; the address with its port filled in.

        Raises:
            AddressError: the address cannot be listened on.
            SecretError: it is off this host, and no secret was given.

        """
        if address.off_host:
            self._identity.secret().check_given(address)
        sock, bound = sockets.listen(address)
        door = Door(sock, bound)
        self._doors.append(door)
        self._await(door)
        if bound.off_host and not bound.dial.any_interface:
            self._identity.public = bound.dial.url
        return bound

    def take_over(self, fd: int, hosts: bytes) -> None:
        """Go on with a connection from another host that its listener handed over."""
        self._ask((fd, tuple(hosts.decode().splitlines())))

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
            self._closed = self._dials.closed = True
            thread = self._thread
            os.write(self._wake[1], b"\0")
        if thread is not None and thread.ident != get_ident():
            thread.join()
        self._guests.end()
        for door in self._doors:
            self._unwatch(door.sock.fileno())
            sockets.remove(door.sock, door.address)
        self._doors.clear()
        for number in self._wake:
            os.close(number)

    def leave(self) -> None:
        """Let go of all of it, in a fork: it is the parent's, and none of its threads run here."""
        for door in self._doors:
            door.sock.close()
        self._guests.leave()
        self._dials.leave()
        for number in self._wake:
            os.close(number)

    def _await(self, door: Door) -> None:
        self._watch(door.sock.fileno(), lambda: self._ask(door))

    def _ask(self, what: Door | Dial | int | Handed) -> None:
        with self._lock:
            closed = self._closed
            if not closed:
                first = not self._asked
                self._asked.append(what)
                if self._thread is None:
                    from threading import Thread  # noqa: PLC0415 - as above

                    self._thread = Thread(target=self._run, name="monarch-gate", daemon=True)
                    self._thread.start()
                elif first:  # one byte until it looks: a pipe that is full would block
                    os.write(self._wake[1], b"\0")
        if closed and isinstance(what, Dial):
            self._dials.end(what, LinkError("closed", "this process is ending"))
        elif closed and isinstance(what, tuple):
            os.close(what[0])

    # What follows runs on the gate's thread.

    def _run(self) -> None:
        wake = self._wake[0]
        try:
            while self._take_asked():
                self._guests.admit()
                self._dials.knock()
                self._poll(wake)
                now = time.monotonic()
                self._guests.expire(now)
                self._dials.expire(now)
        finally:
            with self._lock:
                if self._thread is not None and self._thread.ident == get_ident():
                    self._thread = None

    def _take_asked(self) -> bool:
        """Take up what was asked; False, and no thread any more, once nothing is left to do."""
        with self._lock:
            asked, self._asked = self._asked, []
            idle = not (asked or self._guests or self._dials)
            closed = self._closed
            if idle or closed:
                self._thread = None
        for what in asked:
            if isinstance(what, Door):
                self._guests.knocked(what)
            elif isinstance(what, Dial):
                self._dials.begin(what)
            elif isinstance(what, tuple):
                self._guests.take_over(*what)
            else:
                self._dials.drop(what)
        if closed:
            self._guests.close()
            self._dials.close()
        return not (idle or closed)

    def _poll(self, wake: int) -> None:
        poller = select.poll()
        poller.register(wake, select.POLLIN)
        waiting: dict[int, Guest | Dial] = {}
        for number, guest in self._guests.waits():
            poller.register(number, select.POLLIN)
            waiting[number] = guest
        for number, events, dial in self._dials.waits():
            poller.register(number, events)
            waiting[number] = dial
        now = time.monotonic()
        end = min((*self._guests.ends(now), *self._dials.ends()), default=now)
        for number, _ in poller.poll(max(0.0, end - now) * 1000 + 1):
            if number == wake:
                os.read(wake, 4096)
                continue
            who = waiting[number]
            if isinstance(who, Dial):
                self._dials.step(who)
            else:
                self._guests.step(who)
