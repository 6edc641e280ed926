"""What a connection from another host says first: whom it is for, and how it goes on.

A host has one port. Whoever dials a process of it sends these 24 bytes in the clear, and goes on
with TLS, or with the handshake where both sides were told to do without; who listens keeps the
connection, or hands it to the process that is meant, which takes it from there. Only a refusal is
answered in the clear. A connection that is to be led on (`way`) is for nobody here, and what
encrypts it begins where it arrives.
"""

from __future__ import annotations

import struct

from monarch._link.handshake import MAGIC, REASONS, VERSION, HandshakeError, refusal

SIZE = 24
PLAIN, TLS, ONWARD = 1, 2, 3
KIND = 6  # after the kinds of the handshake's messages
_KIND_HELLO = 1  # the first of these

_ROUTE = struct.Struct("!4sHBBQ8x")
_HEAD = struct.Struct("!4sHBB")


def route(wanted: int, mode: int) -> bytes:
    """The first bytes to the port of a host, for its process `wanted`, 0 for who listens there."""
    return _ROUTE.pack(MAGIC, VERSION, KIND, mode, wanted)


def read(data: bytes, mode: int) -> int | None:
    """Whom a connection is for; None for one that is to be led on.

    Raises:
        HandshakeError: it is none of ours, of another version, or in the clear where this side
            encrypts, or the other way round.

    """
    magic, version, kind, theirs = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise HandshakeError("malformed", "who dialled is no process of monarch")
    if version != VERSION:
        raise HandshakeError("version", f"a peer of version {version}", refusal("version"))
    if kind == _KIND_HELLO:
        raise HandshakeError("tunnel", "a peer that takes this for its host", refusal("tunnel"))
    if kind != KIND or theirs not in {PLAIN, TLS, ONWARD}:
        raise HandshakeError("malformed", "a first message out of order", refusal("malformed"))
    if theirs == ONWARD:
        return None
    if theirs != mode:
        code = "clear" if theirs == PLAIN else "encrypted"
        raise HandshakeError(code, f"a peer that is {code}", refusal(code))
    wanted: int = _ROUTE.unpack(data)[4]
    return wanted


def refused(data: bytes) -> HandshakeError | None:
    """The refusal, in the clear, in 8 bytes where TLS is expected; None where it is none."""
    magic, version, _kind, reason = _HEAD.unpack(data)
    if magic != MAGIC:
        return None
    code, text = REASONS.get(reason, ("malformed", f"refused for reason {reason}"))
    if code == "version":
        text += f" ({version}; this is {VERSION}): install the same release on both sides"
    return HandshakeError(code, f"the other side {text}")
