"""Messages of plain values, with descriptors, between a process and its zygote.

They travel over a socket pair that one of the two inherited from the other, so both ends are one
program: values are marshalled, never unpickled. Nothing here blocks.
"""

from __future__ import annotations

import _socket
import errno
import marshal
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

MOST_DESCRIPTORS = 200  # of one message; the kernel takes 253
_HEADER = struct.Struct("<IH")
_INT = struct.calcsize("i")
_CLOSE_ON_EXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
_NO_SIGNAL = getattr(_socket, "MSG_NOSIGNAL", 0)
_ANCILLARY = _socket.CMSG_SPACE(MOST_DESCRIPTORS * _INT)


class Messages:
    """One end of the socket pair.

    `send` queues what the socket does not take at once; `flush` goes on with it. `receive` gives
    every message that has arrived in full.
    """

    __slots__ = ("_arrived", "_descriptors", "_queue", "_socket")

    def __init__(self, sock: _socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._arrived = bytearray()
        self._descriptors: list[int] = []
        self._queue: list[tuple[memoryview, tuple[int, ...]]] = []

    def fileno(self) -> int:
        """The socket's descriptor; -1 after `close`."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket and every descriptor that is still under way."""
        self._socket.close()
        for _, fds in self._queue:
            close_all(fds)
        close_all(self._descriptors)
        self._queue.clear()
        self._descriptors.clear()

    @property
    def queued(self) -> bool:
        """Whether `flush` has something left to write."""
        return bool(self._queue)

    def send(self, message: tuple[Any, ...], fds: Sequence[int] = ()) -> None:
        """Send a message; its descriptors are closed here once they are on their way.

        Raises:
            BrokenPipeError: the other end is closed.

        """
        body = marshal.dumps(message)
        data = memoryview(_HEADER.pack(len(body), len(fds)) + body)
        self._queue.append((data, tuple(fds)))
        self.flush()

    def flush(self) -> bool:
        """Write what is queued as far as the socket takes it; whether that was all.

        Raises:
            BrokenPipeError: the other end is closed.

        """
        while self._queue:
            data, fds = self._queue[0]
            ancillary = []
            if fds:
                packed = struct.pack(f"{len(fds)}i", *fds)
                ancillary.append((_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed))
            try:
                sent = self._socket.sendmsg([data], ancillary, _NO_SIGNAL)
            except BlockingIOError:
                return False
            except ConnectionError as error:
                raise BrokenPipeError(errno.EPIPE, "the other end is closed") from error
            close_all(fds)
            if sent == len(data):
                del self._queue[0]
            else:
                self._queue[0] = (data[sent:], ())
        return True

    def receive(self) -> tuple[list[tuple[tuple[Any, ...], list[int]]], bool]:
        """Messages that have arrived, each with its descriptors, and whether the end was reached.

        A message comes with fewer descriptors than were sent when this process has no room for
        more.
        """
        ended = False
        lost = False
        while True:
            try:
                data, ancillary, flags, _ = self._socket.recvmsg(65536, _ANCILLARY, _CLOSE_ON_EXEC)
            except BlockingIOError:
                break
            except ConnectionError:
                data, ancillary, flags = b"", [], 0
            for level, kind, packed in ancillary:
                if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                    self._take(packed)
            lost = lost or bool(flags & _socket.MSG_CTRUNC)
            if not data:
                ended = True
                break
            self._arrived += data
        return self._parse(lost=lost), ended

    def _take(self, packed: bytes) -> None:
        count = len(packed) // _INT
        fds = struct.unpack(f"{count}i", packed[: count * _INT])
        if not _CLOSE_ON_EXEC:
            for fd in fds:
                os.set_inheritable(fd, False)
        self._descriptors += fds

    def _parse(self, *, lost: bool) -> list[tuple[tuple[Any, ...], list[int]]]:
        found = []
        start = 0
        while len(self._arrived) - start >= _HEADER.size:
            length, count = _HEADER.unpack_from(self._arrived, start)
            end = start + _HEADER.size + length
            if end > len(self._arrived):
                break
            message = marshal.loads(self._arrived[start + _HEADER.size : end])  # noqa: S302
            fds, self._descriptors = self._descriptors[:count], self._descriptors[count:]
            if lost and len(fds) < count:
                close_all(fds)
                fds = []
            found.append((message, fds))
            start = end
        del self._arrived[:start]
        return found


def close_all(fds: Iterable[int]) -> None:
    """Close descriptors that nobody has taken over, or that are on their way."""
    for fd in fds:
        os.close(fd)
