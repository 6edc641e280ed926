"""Plain sockets: os.fork, a socket pair and pickle; the least that an actor in Python costs."""

from __future__ import annotations

import os
import pickle
import socket
import struct
import threading
from typing import Any

from peers.peer import Cell, Peer, now

_LENGTH = struct.Struct("<I")
_JOINED = 65536  # up to this size a message is one write


class Stream:
    """Pickled messages over a socket, each after its length."""

    def __init__(self, end: socket.socket) -> None:
        self.end, self.read = end, b""

    def send(self, message: Any) -> None:
        body = pickle.dumps(message, 5)
        if len(body) < _JOINED:
            self.end.sendall(_LENGTH.pack(len(body)) + body)
        else:
            self.end.sendall(_LENGTH.pack(len(body)))
            self.end.sendall(body)

    def receive(self) -> Any:
        while len(self.read) < _LENGTH.size:
            chunk = self.end.recv(_JOINED)
            if not chunk:
                raise EOFError
            self.read += chunk
        end = _LENGTH.size + _LENGTH.unpack_from(self.read)[0]
        if len(self.read) >= end:
            message = pickle.loads(memoryview(self.read)[_LENGTH.size : end])  # noqa: S301 - ours
            self.read = self.read[end:]
            return message
        body = bytearray(end - _LENGTH.size)
        filled = len(self.read) - _LENGTH.size
        body[:filled] = self.read[_LENGTH.size :]
        self.read = b""
        rest = memoryview(body)[filled:]
        while rest:
            got = self.end.recv_into(rest)
            if not got:
                raise EOFError
            rest = rest[got:]
        return pickle.loads(body)  # noqa: S301 - ours


def _serve(stream: Stream) -> None:
    cell = Cell()
    while True:
        try:
            name, arguments = stream.receive()
        except EOFError:
            os._exit(0)
        stream.send(getattr(cell, name)(*arguments))


def _worker() -> Stream:
    here, there = socket.socketpair()
    if os.fork() == 0:
        here.close()
        _serve(Stream(there))
    there.close()
    return Stream(here)


class Adapter(Peer):
    def spawn(self, count: int) -> list[Stream]:
        return [_worker() for _ in range(count)]

    def submit(self, group: list[Stream], rank: int, name: str, *arguments: Any) -> Stream:
        group[rank].send((name, arguments))
        return group[rank]

    def call(self, group: list[Stream], rank: int, name: str, *arguments: Any) -> Any:
        group[rank].send((name, arguments))
        return group[rank].receive()

    def wait(self, pending: list[Stream]) -> list[Any]:
        return [stream.receive() for stream in pending]

    def pipelined(self, group: list[Stream], rank: int, count: int) -> float:
        results: list[Any] = []

        def read() -> None:
            results.extend(group[rank].receive() for _ in range(count))

        reader, start = threading.Thread(target=read), now()
        reader.start()
        for value in range(count):
            group[rank].send(("inc", (value,)))
        reader.join()
        assert results[-1] == count
        return now() - start

    def replace(self, group: list[Stream], rank: int) -> list[Stream]:
        group[rank] = _worker()
        return group
