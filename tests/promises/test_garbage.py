"""A peer that has proven itself and then sends anything at all: it loses its link, nobody else."""

from __future__ import annotations

import os
import random
import socket

import monarch._core as core
import pytest

from monarch._link import secret, sockets
from monarch._link.address import of_proc, parse
from monarch._link.handshake import Dialer
from tests.promises.actors import Mortal
from tests.watching import resident

T = 60
ROUNDS = 400


def linked(proc):
    """A connection to a process, authenticated: what is sent next are its frames."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(T)
    sock.connect("\0" + parse(of_proc(proc)).path[1:])
    own = int.from_bytes(os.urandom(8)) | 1
    side = Dialer(secret.current(), own, sockets.channel(sock.getpeername()), peer=proc)
    sock.sendall(side.start())
    while side.need:
        sock.sendall(side.feed(sock.recv(side.need)))
    return sock


def garbage(draw):
    """Noise, or frames with right headers, right numbers and any contents, the last one damaged."""
    if draw.random() < 0.2:
        return draw.randbytes(draw.randrange(1, 500))
    sent = b""
    for number in range(draw.randrange(1, 6)):
        message = draw.randbytes(draw.choice([0, 1, 8, 16, 40, 41, 100, 3000]))
        buffers = [draw.randbytes(draw.randrange(40)) for _ in range(draw.choice([0, 0, 0, 1, 3]))]
        kind = draw.randrange(32) if draw.random() < 0.9 else draw.randrange(256)
        sent += b"".join(map(bytes, core.encode(message, buffers, kind=kind, sequence=number)))
    damage = draw.random()
    if damage < 0.3:
        return sent[: draw.randrange(len(sent))]
    if damage < 0.6:
        changed = bytearray(sent)
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        return bytes(changed)
    return sent


@pytest.mark.promise("X08")
def test_garbage_of_a_peer_that_is_trusted_ends_its_link_and_the_process_goes_on(cluster):
    mesh = cluster(1)
    workers = mesh.spawn("workers", Mortal)
    (pid,) = workers.pid.call().get(T).values()
    proc = mesh.procs._procs.refs[0].id
    draw = random.Random(1)  # noqa: S311 - to be repeated
    before = 0
    for turn in range(ROUNDS):
        with linked(proc) as sock:
            try:
                sock.sendall(garbage(draw))
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65536):
                    pass
            except ConnectionError:
                pass
        if turn % 50 == 0:
            assert list(workers.pid.call().get(T).values()) == [pid]
            before = before or resident(pid)
    assert list(workers.pid.call().get(T).values()) == [pid]
    assert resident(pid) - before < 32 << 20
    assert mesh.failures == []
