"""A TCP relay, for those that look at what passes or break it."""

from __future__ import annotations

import socket
import struct

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: a reset in place of an orderly end


class Relay:
    """Passes from one address to another; subclasses hear of connections, and change the bytes."""

    def __init__(self, listen: tuple[str, int], to: tuple[str, int]) -> None:
        self._listener = socket.create_server(listen)
        self._to = to
        self._other: dict[socket.socket, socket.socket] = {}

    def _opened(self, near: socket.socket, far: socket.socket) -> None:
        """A connection has come, and goes on."""

    def _passing(self, _sock: socket.socket, data: bytes) -> bytes:
        """What is passed on of what a socket has received."""
        return data

    def _closed(self, sock: socket.socket) -> None:
        """A socket is passed on no more."""

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        try:
            far = socket.create_connection(self._to, 5)
        except OSError:
            near.close()
            return
        for sock in (near, far):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._other[near], self._other[far] = far, near
        self._opened(near, far)

    def _relay(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(65536)
            if data:
                self._other[sock].sendall(self._passing(sock, data))
                return
        except OSError:
            pass
        self._close(sock)

    def _reset(self, near: socket.socket) -> None:
        """Have both ends close by a reset."""
        for sock in (near, self._other[near]):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def _close(self, sock: socket.socket) -> None:
        for one in (sock, self._other[sock]):
            one.close()
            self._other.pop(one, None)
            self._closed(one)
