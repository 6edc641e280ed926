"""Ten thousand connections to a port that are begun and go no further.

As a program: `python ci/rigs/crowd.py ADDRESS PORT`. Those that are closed are made again, 200 a
second, and those that stay send a byte a second. It prints "here" once all were begun, and "again"
once more than 500 of them were made again.
"""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import sys
import time

_PAUSE = 0.1  # seconds between two looks
_AT_ONCE = 20  # closed ones that a look makes again
_CROWD = 10_000
_AGAIN = 500


def main(address: str, port: str) -> None:
    """Be that crowd until somebody ends it."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (_CROWD + 2000, most))
    begun: dict[int, socket.socket] = {}
    poller = select.epoll()

    def another() -> None:
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex((address, int(port)))
        begun[sock.fileno()] = sock
        poller.register(sock, select.EPOLLIN)

    while len(begun) < _CROWD:
        another()
    print("here", flush=True)
    closed = 0
    due = time.monotonic()
    while True:
        time.sleep(_PAUSE)
        ended = poller.poll(0, _AT_ONCE)
        for number, _ in ended:
            begun.pop(number).close()
            another()
        if closed <= _AGAIN < closed + len(ended):
            print("again", flush=True)
        closed += len(ended)
        if time.monotonic() > due:
            due += 1
            for sock in begun.values():
                with contextlib.suppress(OSError):
                    sock.send(b"M")


if __name__ == "__main__":
    main(*sys.argv[1:])
