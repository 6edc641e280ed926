"""A port of this machine that leads elsewhere, as a forward of kubectl's or of ssh's does."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def forward(dial: Callable[[], socket.socket]) -> Iterator[int]:
    """The port; `dial` makes the other half of each connection, or raises OSError."""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError), dial() as far:
                back = threading.Thread(target=_pass_on, args=(far, self.request), daemon=True)
                back.start()
                _pass_on(self.request, far)
                back.join()

    with Server(("127.0.0.1", 0), Forward) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_WR)
