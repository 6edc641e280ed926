"""pyzmq: a DEALER pair over ipc:// a process; buffers of pickle protocol 5 are frames."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import zmq

from peers.peer import Cell, Peer

_COPIED = 65536  # below this size copying is cheaper than sharing


def _pack(message: Any) -> list[Any]:
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, 5, buffer_callback=buffers.append)
    return [head, *(buffer.raw() for buffer in buffers)]


def _send(end: Any, message: Any) -> None:
    frames = _pack(message)
    end.send_multipart(frames, copy=sum(map(len, frames)) < _COPIED)


def _receive(end: Any) -> Any:
    head, *buffers = [frame.buffer for frame in end.recv_multipart(copy=False)]
    return pickle.loads(head, buffers=buffers)  # noqa: S301 - ours


def serve(address: str) -> None:
    end = zmq.Context().socket(zmq.DEALER)
    end.set_hwm(0)
    end.connect(address)
    cell = Cell()
    while True:
        name, arguments = _receive(end)
        _send(end, getattr(cell, name)(*arguments))


class Adapter(Peer):
    def boot(self) -> None:
        self.context = zmq.Context()
        self.folder = tempfile.mkdtemp()
        self.workers: list[subprocess.Popen[bytes]] = []

    def spawn(self, count: int) -> list[Any]:
        return [self._worker() for _ in range(count)]

    def _worker(self) -> Any:
        address = f"ipc://{self.folder}/{len(self.workers)}"
        end = self.context.socket(zmq.DEALER)
        end.set_hwm(0)
        end.linger = 0
        end.bind(address)
        command = [sys.executable, "-m", "peers", "zeromq", "serve", address]
        self.workers.append(subprocess.Popen(command))
        return end

    def submit(self, group: list[Any], rank: int, name: str, *arguments: Any) -> Any:
        _send(group[rank], (name, arguments))
        return group[rank]

    def wait(self, pending: list[Any]) -> list[Any]:
        return [_receive(end) for end in pending]

    def replace(self, group: list[Any], rank: int) -> list[Any]:
        group[rank] = self._worker()
        return group

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
