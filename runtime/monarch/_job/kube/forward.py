"""Port forwards through the Kubernetes API, for a program outside of the cluster."""

from __future__ import annotations

import contextlib
import select
import shutil
import socket
import ssl
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from monarch._job.attach import lead
from monarch._job.kube import frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from monarch._job.kube.api import Api

_DATA, _ERROR = 0, 1  # channels of the one port of a connection
_CHUNK, _AHEAD = 1 << 16, 1 << 20  # bytes read at a time, and that one side may be ahead
_NOT_YET = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Forwards:
    """Ways to pods through the API, as long as this program lives.

    Each is a Unix socket in a folder of this user's alone; each connection to it is one to the API.
    """

    def __init__(self, connect: Callable[[], Api]) -> None:
        self._connect = connect
        self._api: Api | None = None
        self._folder: str | None = None
        self._made = 0
        self._doors: dict[str, socket.socket] = {}  # by the URL that leads to it

    def open(self, url: str, pod: str, port: int) -> None:
        """Lead links to `url` to this port of a pod, in place of one that had the address before.

        Raises:
            JobError: the API cannot be reached.

        """
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="monarch-kube-")
        if self._api is None:
            self._api = self._connect()
        before = self._doors.pop(url, None)
        if before is not None:
            _close(before)
        self._made += 1
        path = f"{self._folder}/{self._made}"
        door = self._doors[url] = socket.socket(socket.AF_UNIX)
        door.bind(path)
        door.listen()
        api = self._api
        threading.Thread(
            target=_accept, args=(door, api, pod, port), name="monarch-forward", daemon=True
        ).start()
        lead(url, path)

    def close(self) -> None:
        """End all of them."""
        doors, self._doors = self._doors, {}
        for url, door in doors.items():
            lead(url, None)
            _close(door)
        if self._api is not None:
            self._api.close()
            self._api = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _close(door: socket.socket) -> None:
    with contextlib.suppress(OSError):
        door.shutdown(socket.SHUT_RDWR)  # wakes who accepts
    door.close()


def _accept(door: socket.socket, api: Api, pod: str, port: int) -> None:
    while True:
        try:
            guest, _ = door.accept()
        except OSError:
            return
        threading.Thread(
            target=_forward, args=(guest, api, pod, port), name="monarch-forward", daemon=True
        ).start()


def _forward(guest: socket.socket, api: Api, pod: str, port: int) -> None:
    """Carry one connection; whoever dialled it finds it closed where the pod does not take it."""
    with guest, contextlib.suppress(Exception), api.forward(pod, port) as (there, first):
        _Carrier(guest, there).run(first)


class _Carrier:
    """Carries bytes between a socket and a websocket; in a thread of its own, as TLS wants it."""

    def __init__(self, guest: socket.socket, there: Any) -> None:
        self._guest = guest
        self._there = there
        self._up, self._down = bytearray(), bytearray()  # what is to be written to either
        self._reader = frames.Reader()
        self._begun: set[int] = set()  # channels that have told the number of their port
        guest.setblocking(False)
        there.setblocking(False)

    def run(self, first: bytes) -> None:
        """Carry until either side ends."""
        going_on = self._take(first)
        while going_on or self._down:
            reads = [self._there] if going_on and len(self._down) < _AHEAD else []
            waits = None
            if reads and getattr(self._there, "pending", int)():
                waits = 0.0  # TLS has read more than it gave
            if going_on and len(self._up) < _AHEAD:
                reads.append(self._guest)
            writes = [self._there] if self._up else []
            writes += [self._guest] if self._down else []
            readable, writable, _ = select.select(reads, writes, [], waits)
            if self._there in readable or waits is not None:
                going_on = self._take(self._read(self._there))
            if self._guest in readable:
                data = self._read(self._guest)
                if data == b"":
                    return
                self._up += frames.frame(frames.BINARY, bytes([_DATA]) + data) if data else b""
            for one, left in ((self._there, self._up), (self._guest, self._down)):
                if one in writable:
                    with contextlib.suppress(*_NOT_YET):
                        del left[: one.send(left)]

    @staticmethod
    def _read(one: Any) -> bytes | None:
        """What has come, empty at the end; None where it is not a whole record of TLS yet."""
        try:
            data: bytes = one.recv(_CHUNK)
        except _NOT_YET:
            return None
        return data

    def _take(self, data: bytes | None) -> bool:
        """Take what the pod says; False where that was its last."""
        if data == b"":
            return False
        for kind, message in self._reader.feed(data or b""):
            if kind == frames.PING:
                self._up += frames.frame(frames.PONG, message)
            elif kind == frames.CLOSE:
                return False
            elif kind == frames.BINARY and message:
                channel = message[0]
                if channel not in self._begun:
                    self._begun.add(channel)
                elif channel == _ERROR:
                    return False
                else:
                    self._down += message[1:]
        return True
