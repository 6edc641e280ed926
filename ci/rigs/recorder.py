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
import struct
import sys
from pathlib import Path

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: a reset in place of an orderly end
_PATIENCE = 10.0  # seconds for the answer to a replay


class Recorder:
    """Relays from one address to another, and keeps what it sees in `folder`."""

    def __init__(self, listen: tuple[str, int], to: tuple[str, int], folder: Path) -> None:
        self._listener = socket.create_server(listen)
        self._to = to
        self._folder = folder
        self._other: dict[socket.socket, socket.socket] = {}
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
                for sock in (near, self._other[near]):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
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
        self._files[near] = self._folder / f"{self._count}.up"
        self._files[far] = self._folder / f"{self._count}.down"
        self._count += 1

    def _relay(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(65536)
            if data:
                with self._files[sock].open("ab") as file:
                    file.write(data)
                if sock in self._to_damage:
                    self._to_damage.discard(sock)
                    middle = len(data) // 2
                    data = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
                self._other[sock].sendall(data)
                return
        except OSError:
            pass
        self._close(sock)

    def _close(self, sock: socket.socket) -> None:
        for one in (sock, self._other[sock]):
            one.close()
            self._other.pop(one, None)
            self._files.pop(one, None)


if __name__ == "__main__":
    _host, _port, _to_host, _to_port, _folder = sys.argv[1:]
    _made = Recorder((_host, int(_port)), (_to_host, int(_to_port)), Path(_folder))
    print("listens", flush=True)
    _made.run()
