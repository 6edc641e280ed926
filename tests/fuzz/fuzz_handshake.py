"""Fuzzer of the handshake: no bytes authenticate but those of a peer with the secret.

The first byte of an input says which side reads it and in pieces of what size. Run it by
`nox -s fuzz`, or alone: python tests/fuzz/fuzz_handshake.py -max_total_time=60
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports():
    from monarch._link import handshake
    from monarch._link.secret import Secret

_SECRET = Secret(b"f" * 32, "the fuzzer")


def test_one_input(data: bytes) -> None:
    if not data:
        return
    side: handshake.Dialer | handshake.Listener
    if data[0] & 1:
        side = handshake.Listener(_SECRET, 2, b"unix \0x", nonce=b"2" * 32)
    else:
        side = handshake.Dialer(_SECRET, 1, b"unix \0x", nonce=b"1" * 32)
        side.start()
    piece = (data[0] >> 1) % handshake.BUFFER + 1
    data = data[1:]
    while data and side.need:
        size = min(side.need, piece)
        try:
            side.feed(data[:size])
        except handshake.HandshakeError:
            return
        data = data[size:]
    assert side.need, "bytes of no peer were taken for one with the secret"


if __name__ == "__main__":
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()
