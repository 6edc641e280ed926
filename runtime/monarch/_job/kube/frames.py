"""Frames of a websocket (RFC 6455), as a client writes and reads them. Pure."""

from __future__ import annotations

import base64
import hashlib
import os
import struct

BINARY, CLOSE, PING, PONG = 2, 8, 9, 10
_LIMIT = 64 << 20  # bytes of a message; more is no port forward
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class FrameError(ValueError):
    """What came is no websocket that this side can read."""


def key() -> str:
    """A new key for a request."""
    return base64.b64encode(os.urandom(16)).decode()


def answer(key: str) -> str:
    """What a server says that understood the request with this key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _MAGIC).digest()).decode()  # noqa: S324 - as it is specified


def frame(kind: int, data: bytes) -> bytes:
    """One message of this kind, masked as a client has to."""
    mask = os.urandom(4)
    size = len(data)
    head = bytes([0x80 | kind])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += struct.pack("!BH", 0x80 | 126, size)
    else:
        head += struct.pack("!BQ", 0x80 | 127, size)
    number = int.from_bytes(mask * (size // 4 + 1))
    excess = 4 - size % 4
    masked = (int.from_bytes(data) ^ (number >> 8 * excess)).to_bytes(size) if size else b""
    return head + mask + masked


class Reader:
    """Messages out of the bytes that a server sends."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._kind = 0
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The messages that are whole now, each with its kind.

        Raises:
            FrameError: it is none, or too long.

        """
        self._data += data
        found = []
        while (one := self._frame()) is not None:
            last, kind, payload = one
            if kind >= CLOSE:  # may come between the parts of another
                found.append((kind, payload))
                continue
            self._kind = kind or self._kind
            self._parts.append(payload)
            if last:
                found.append((self._kind, b"".join(self._parts)))
                self._parts = []
        return found

    def _frame(self) -> tuple[bool, int, bytes] | None:
        data = self._data
        if len(data) < 2:
            return None
        size, start = data[1], 2
        if size & 0x80 or data[0] & 0x70:
            raise FrameError("a server does not mask its frames, and no extension was asked for")
        for mark, form in ((126, "!H"), (127, "!Q")):
            if size == mark:
                start += struct.calcsize(form)
                if len(data) < start:
                    return None
                (size,) = struct.unpack_from(form, data, 2)
                break
        if size > _LIMIT:
            raise FrameError(f"a message of {size} bytes")
        if len(data) < start + size:
            return None
        payload = bytes(data[start : start + size])
        head = data[0]
        del data[: start + size]
        return bool(head & 0x80), head & 0xF, payload
