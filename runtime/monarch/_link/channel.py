"""A connection in the making: its bytes, in the clear or through TLS."""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from monarch._core import TlsStream
    from monarch._link.pending import Engine


class Channel:
    """A connected, non-blocking socket, and what encrypts it once `tls` is set."""

    __slots__ = ("sock", "tls")

    def __init__(self, sock: socket) -> None:
        self.sock = sock
        self.tls: TlsStream | None = None

    def fileno(self) -> int:
        """The socket's descriptor; -1 once it is closed or given away."""
        return self.sock.fileno()

    def recv(self, size: int) -> bytes:
        """At most `size` bytes, as a socket gives them."""
        return self.sock.recv(size) if self.tls is None else self.tls.recv(size)

    def send(self, data: bytes) -> None:
        """Send a message of the handshake whole: it is far smaller than a new socket's buffer."""
        if not data:
            return
        sent = self.sock.send(data) if self.tls is None else self.tls.send(data)
        if sent != len(data):
            raise OSError(errno.ENOBUFS, "the peer does not read")

    def say(self, data: bytes) -> None:
        """As `send`, to a peer that may be gone: last words."""
        try:
            self.send(data)
        except OSError:
            return

    def close(self) -> None:
        """Close it."""
        self.tls = None
        self.sock.close()

    def give(self, engine: Engine, peer: int, *, session: bool) -> bool:
        """Let the engine have it, as the link to `peer`, which may outlive this connection.

        False where it takes none: it ends, or counts the peer among the dead.
        """
        from monarch.errors import FrameError  # noqa: PLC0415 - rarely raised

        tls, self.tls = self.tls, None
        try:
            if session:
                engine.add_link(peer, self.sock.detach(), tls, True)
            else:
                engine.add_link(peer, self.sock.detach())
        except FrameError:
            return False
        return True

    def go_on(self, engine: Engine, peer: int, *, again: bool = False) -> bool:
        """Let the engine have it for the session with `peer`; False where there is none.

        `again`: the peer does not know of the session, which begins again with it.
        """
        from monarch.errors import FrameError  # noqa: PLC0415 - off this host only

        tls, self.tls = self.tls, None
        resume = engine.begin_link_again if again else engine.resume_link
        try:
            resume(peer, self.sock.detach(), tls)
        except FrameError:
            return False
        return True
