"""What stands in for the engine: it keeps the sockets it is given, and watches listeners."""

from __future__ import annotations

import os
import select
import socket
import threading

from monarch._link import handshake
from monarch._link.address import parse
from monarch._link.secret import Secret

SECRET = Secret(b"s" * 32, "the test")
OTHER = Secret(b"o" * 32, "another test")


def raw(address, source=None):
    """A connection without any handshake; by TCP from the address `source` of this host."""
    found = parse(address) if isinstance(address, str) else address
    if found.kind == "tcp":
        own = None if source is None else (source, 0)
        return socket.create_connection((found.host, found.port), timeout=20, source_address=own)
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(20)
    sock.connect("\0" + found.path[1:] if found.path.startswith("@") else found.path)
    return sock


def drained(sock):
    """What the other side sends until it closes."""
    data = b""
    try:
        while chunk := sock.recv(4096):
            data += chunk
    except ConnectionResetError:
        pass
    sock.close()
    return data


def greet(sock, name):
    """The part of a dialer, proc 3, as long as it takes."""
    side = handshake.Dialer(SECRET, 3, b"unix \0" + parse(name).path[1:].encode())
    sock.sendall(side.start())
    while side.need:
        sock.sendall(side.feed(sock.recv(side.need)))


class Links:
    """The engine's side of a gate. `links` holds a blocking socket for each peer.

    `handed` names the peers that were handed a connection.
    """

    def __init__(self) -> None:
        self.links: dict[int, socket.socket] = {}
        self.handed: list[int] = []
        self.fenced: set[int] = set()
        self.made = threading.Condition()
        self._watched = {}
        self._lock = threading.Lock()
        self._wake = os.pipe()
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def add_link(self, peer, fd):
        sock = socket.socket(fileno=fd)
        sock.settimeout(20)
        with self.made:
            assert not self.has_link(peer), "two links to one peer"
            self.links[peer] = sock
            self.made.notify_all()

    def hand_over(self, peer, fd, _hosts):
        os.close(fd)
        self.handed.append(peer)

    def has_link(self, peer):
        sock = self.links.get(peer)
        if sock is None:
            return False
        poller = select.poll()
        poller.register(sock, select.POLLIN)
        if poller.poll(0) and sock.recv(1, socket.MSG_PEEK) == b"":
            self.links.pop(peer).close()
            return False
        return True

    def meet(self, peer, going_on, dialling, stands):
        """As the engine without a session: these are links of one host."""
        if peer in self.fenced or going_on:
            return "gone"
        return "duplicate" if self.has_link(peer) or (dialling and stands) else "take"

    def watch(self, fd, handler):
        with self._lock:
            self._watched[fd] = handler
        os.write(self._wake[1], b"\0")

    def unwatch(self, fd):
        with self._lock:
            self._watched.pop(fd, None)

    def link_to(self, peer):
        """The socket of a link, which the other side makes."""
        with self.made:
            assert self.made.wait_for(lambda: peer in self.links, 20)
        return self.links[peer]

    def close(self):
        if self._ended:
            return
        self._ended = True
        os.write(self._wake[1], b"\0")
        self._thread.join()
        for sock in self.links.values():
            sock.close()
        for fd in self._wake:
            os.close(fd)

    def _run(self):
        while not self._ended:
            poller = select.poll()
            with self._lock:
                numbers = [self._wake[0], *self._watched]
            for number in numbers:
                poller.register(number, select.POLLIN)
            for number, _ in poller.poll():
                if number == self._wake[0]:
                    os.read(number, 4096)
                    continue
                with self._lock:
                    handler = self._watched.pop(number, None)
                if handler is not None:
                    handler()
