"""A TCP relay that breaks connections: at a random byte, after a random time, from a seed.

As a program: `python -m ci.rigs.cutter LISTEN_HOST LISTEN_PORT TO_HOST TO_PORT SEED LEAST MOST`,
the last two the seconds that a connection lives. It prints a line when it listens, and one for each
cut.
"""

from __future__ import annotations

import random
import select
import sys
import time
from typing import TYPE_CHECKING

from ci.rigs.relay import Relay

if TYPE_CHECKING:
    import socket


class Cutter(Relay):
    """Relays from one address to another, and cuts every connection after a while."""

    def __init__(
        self, listen: tuple[str, int], to: tuple[str, int], seed: int, least: float, most: float
    ) -> None:
        super().__init__(listen, to)
        self._random = random.Random(seed)  # noqa: S311 - for tests that can be repeated
        self._least, self._most = least, most
        self._ends: dict[socket.socket, float] = {}
        self.cuts = 0

    def run(self) -> None:
        """Relay for ever."""
        while True:
            self.step()

    def step(self) -> None:
        """Do what is to be done in the next few milliseconds."""
        ready, _, _ = select.select([self._listener, *self._other], [], [], 0.01)
        for sock in ready:
            if sock is self._listener:
                self._accept()
            elif sock in self._other:
                self._relay(sock)
        now = time.monotonic()
        for sock in [one for one, end in self._ends.items() if end <= now]:
            self._cut(sock)

    def _opened(self, near: socket.socket, _far: socket.socket) -> None:
        self._ends[near] = time.monotonic() + self._random.uniform(self._least, self._most)

    def _closed(self, sock: socket.socket) -> None:
        self._ends.pop(sock, None)

    def _cut(self, near: socket.socket) -> None:
        """Pass on a part of what has come, and break both ends, half of the time by a reset."""
        far = self._other[near]
        for sock, other in ((near, far), (far, near)):
            sock.setblocking(False)
            try:
                data = sock.recv(65536)
                other.sendall(data[: self._random.randrange(len(data) + 1)])
            except OSError:
                continue
        if self._random.random() < 0.5:
            self._reset(near)
        self.cuts += 1
        print("cut", flush=True)
        self._close(near)


if __name__ == "__main__":
    _host, _port, _to_host, _to_port, _seed, _least, _most = sys.argv[1:]
    _made = Cutter(
        (_host, int(_port)), (_to_host, int(_to_port)), int(_seed), float(_least), float(_most)
    )
    print("listens", flush=True)
    _made.run()
