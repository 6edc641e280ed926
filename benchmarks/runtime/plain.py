"""Calls to many with plain sockets and nothing else: what the hops and wake-ups alone take.

`plain.py call COUNT` asks COUNT processes of this host, each of which answers by its socket pair;
`plain.py call COUNT ADDRESS…` asks COUNT behind each of these relays, by one TCP connection each.
`plain.py relay ADDRESS` is such a relay: it passes a message on to each of its processes, and their
answers back in one when it has all. Messages are as large as the runtime's. No encryption, no order
or loss to think of, nothing is unpickled: nobody's code runs.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from statistics import median

_CALL, _ANSWER = bytes(147), bytes(53)  # what a call and its answer are on the wire here
_CALLS = 300
_WARM = 3.0  # seconds of calls before those


def _leaves(count: int) -> list[socket.socket]:
    """Processes that answer each message, by the sockets that lead to them."""
    found: list[socket.socket] = []
    for _ in range(count):
        here, there = socket.socketpair()
        if os.fork() == 0:
            for one in (here, *found):
                one.close()
            while there.recv(4096):
                there.send(_ANSWER)
            os._exit(0)
        there.close()
        found.append(here)
    return found


class _Many:
    """Sockets that are asked together."""

    def __init__(self, sockets: list[socket.socket], answer: int) -> None:
        self._answer = answer
        self._sockets = {one.fileno(): one for one in sockets}
        self._poll = select.epoll()
        for number in self._sockets:
            self._poll.register(number, select.EPOLLIN)

    def ask(self) -> None:
        """Send a message to each, and take the answer of each."""
        for one in self._sockets.values():
            one.send(_CALL)
        left = len(self._sockets) * self._answer
        while left:
            for number, _ in self._poll.poll():
                left -= len(self._sockets[number].recv(4096))


def _at(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def relay(address: str) -> None:
    """Pass on what comes by one connection, until that ends; its first byte says to how many."""
    with socket.create_server(_at(address)) as server:
        print("ready", flush=True)
        up, _ = server.accept()
    up.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    many = _Many(_leaves(up.recv(1)[0]), len(_ANSWER))
    while up.recv(4096):
        many.ask()
        up.send(_ANSWER)


def call(count: int, relays: list[str], pause: float) -> float:
    """Milliseconds of a call, the median; `pause` seconds before each."""
    if relays:
        sockets = [socket.create_connection(_at(one)) for one in relays]
        for one in sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.send(bytes([count]))
        time.sleep(0.5)  # for them to have their processes; until then it would be one message
    else:
        sockets = _leaves(count)
    many = _Many(sockets, len(_ANSWER))
    end = time.monotonic() + _WARM
    while time.monotonic() < end:
        many.ask()
    times = []
    for _ in range(_CALLS):
        time.sleep(pause)
        began = time.perf_counter()
        many.ask()
        times.append(time.perf_counter() - began)
    return median(times) * 1e3


if __name__ == "__main__":
    if sys.argv[1] == "relay":
        relay(sys.argv[2])
    else:
        print(call(int(sys.argv[2]), sys.argv[4:], float(sys.argv[3])))
