"""A TCP relay that records what passes, and can break in: cut, or put old bytes between new ones.

As a program: `python -m ci.rigs.recorder LISTEN_HOST LISTEN_PORT TO_HOST TO_PORT FOLDER`. What the
dialling side of connection N sends is in FOLDER/N.up, the answers are in FOLDER/N.down. It prints a
line when it listens, and takes orders on its input, each answered by a line:

    cut            every connection is reset
    repeat BYTES   into each connection go the last so many bytes that went up there, once more
    damage         of what each connection carries next, in each direction, one bit is flipped
    replay N       a connection of its own sends what is in FOLDER/N.up; `N: answer in hexadecimal`
"""

from __future__ import annotations

import select
import socket
import sys
from pathlib import Path

from ci.rigs.relay import Relay

_PATIENCE = 10.0  # seconds for the answer to a replay


class Recorder(Relay):
    """Relays from one address to another, and keeps what it sees in `folder`."""

    def __init__(self, listen: tuple[str, int], to: tuple[str, int], folder: Path) -> None:
        super().__init__(listen, to)
        self._folder = folder
        self._files: dict[socket.socket, Path] = {}
        self._to_damage: set[socket.socket] = set()
        self._count = 0

    def run(self) -> None:
        """Relay until the input ends."""
        next_order = sys.stdin.readline
        while True:
            ready, _, _ = select.select([sys.stdin, self._listener, *self._other], [], [])
            for one in ready:
                if one is sys.stdin:
                    line = next_order()
                    if not line:
                        return
                    print(self._obey(*line.split()), flush=True)
                elif one is self._listener:
                    self._accept()
                elif one in self._other:
                    self._relay(one)

    def _obey(self, order: str, *words: str) -> str:
        if order == "replay":
            return f"{words[0]}: {self._replay(int(words[0])).hex()}"
        if order == "damage":
            self._to_damage = set(self._files)
            return order
        for near in [one for one, path in self._files.items() if path.suffix == ".up"]:
            if order == "repeat":
                self._other[near].sendall(self._files[near].read_bytes()[-int(words[0]) :])
            else:
                self._reset(near)
                self._close(near)
        return order

    def _replay(self, number: int) -> bytes:
        """What is answered until the other side ends the connection."""
        answer = b""
        with socket.create_connection(self._to, _PATIENCE) as sock:
            try:
                sock.sendall((self._folder / f"{number}.up").read_bytes())
                while data := sock.recv(65536):
                    answer += data
            except ConnectionError:
                pass
        return answer

    def _opened(self, near: socket.socket, far: socket.socket) -> None:
        self._files[near] = self._folder / f"{self._count}.up"
        self._files[far] = self._folder / f"{self._count}.down"
        self._count += 1

    def _passing(self, sock: socket.socket, data: bytes) -> bytes:
        with self._files[sock].open("ab") as file:
            file.write(data)
        if sock not in self._to_damage:
            return data
        self._to_damage.discard(sock)
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]

    def _closed(self, sock: socket.socket) -> None:
        self._files.pop(sock, None)


if __name__ == "__main__":
    _host, _port, _to_host, _to_port, _folder = sys.argv[1:]
    _made = Recorder((_host, int(_port)), (_to_host, int(_to_port)), Path(_folder))
    print("listens", flush=True)
    _made.run()
