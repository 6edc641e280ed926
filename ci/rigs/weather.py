"""What a bad network does to one host's packets: late, lost, out of order, doubled, damaged.

As a program in the namespace of the switch: `python -m ci.rigs.weather PORT SEED NAME=VALUE…`. It
takes the port off the bridge and carries every frame between both itself, in both directions; it
prints a line once it does. Times are seconds, the others shares of all frames:

    late=0.05      each frame is held for so long
    spread=0.02    and for up to so long more, by chance: frames overtake each other
    lost=0.05      dropped
    doubled=0.05   carried twice
    damaged=0.05   with one bit flipped; the host drops those whose checksum tells
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time
from itertools import count

_ALL = 3  # ETH_P_ALL
_HEADERS = 14 + 20  # bytes of Ethernet and IPv4: damage comes after them
_LONGEST = 65536
_OUTGOING = 4  # PACKET_OUTGOING
_TAP = 0x0002 | 0x1000  # IFF_TAP | IFF_NO_PI
_TUNSETIFF = 0x400454CA


class Weather:
    """Between a port of the switch and the bridge."""

    def __init__(self, port: str, seed: int, **shares: float) -> None:
        self._random = random.Random(seed)  # noqa: S311 - for tests that can be repeated
        self._late = shares.pop("late", 0.0)
        self._spread = shares.pop("spread", 0.0)
        self._lost = shares.pop("lost", 0.0)
        self._doubled = shares.pop("doubled", 0.0)
        self._damaged = shares.pop("damaged", 0.0)
        if shares:
            raise ValueError(f"no weather has {', '.join(shares)}")
        self._tap = os.open("/dev/net/tun", os.O_RDWR)
        name = f"w{port}"
        fcntl.ioctl(self._tap, _TUNSETIFF, struct.pack("16sH", name.encode(), _TAP))
        for command in (f"{port} nomaster", f"{name} master br0 up"):
            subprocess.run(["ip", "link", "set", *command.split()], check=True)
        self._port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        self._port.bind((port, 0))
        self._held: list[tuple[float, int, bool, bytes]] = []
        self._numbers = count()

    def run(self) -> None:
        """Carry frames for ever."""
        poller = select.poll()
        for one in (self._tap, self._port.fileno()):
            poller.register(one, select.POLLIN)
        while True:
            wait = None if not self._held else max(0.0, self._held[0][0] - time.monotonic()) * 1000
            for number, _ in poller.poll(wait):
                if number == self._tap:
                    self._take(os.read(self._tap, _LONGEST), down=True)
                else:
                    frame, where = self._port.recvfrom(_LONGEST)
                    if where[2] != _OUTGOING:
                        self._take(frame, down=False)
            while self._held and self._held[0][0] <= time.monotonic():
                _, _, down, frame = heapq.heappop(self._held)
                try:
                    self._port.send(frame) if down else os.write(self._tap, frame)
                except OSError:
                    continue  # an interface is down: lost

    def _take(self, frame: bytes, *, down: bool) -> None:
        chance = self._random.random
        if chance() < self._lost:
            return
        for _ in range(2 if chance() < self._doubled else 1):
            sent = frame
            if chance() < self._damaged and len(frame) > _HEADERS:
                changed = bytearray(frame)
                place = self._random.randrange(_HEADERS, len(changed))
                changed[place] ^= 1 << self._random.randrange(8)
                sent = bytes(changed)
            due = time.monotonic() + self._late + chance() * self._spread
            heapq.heappush(self._held, (due, next(self._numbers), down, sent))


if __name__ == "__main__":
    _port, _seed, *_pairs = sys.argv[1:]
    _shares = {name: float(value) for name, _, value in (pair.partition("=") for pair in _pairs)}
    _made = Weather(_port, int(_seed), **_shares)
    print("begins", flush=True)
    _made.run()
