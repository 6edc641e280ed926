"""Ways by a host agent: where they lead, and what passes on them."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from monarch._link import handshake, way
from monarch._link.address import parse
from monarch._link.relays import Relays
from tests.monarch.link.harness import SECRET

_CHANNEL = b"a connection"


def sides(url):
    """Both sides after the handshake, and the target that the dialer sends."""
    asker = way.Asker(SECRET, 3, _CHANNEL, parse(url))
    listener = handshake.Listener(SECRET, 4, _CHANNEL, roles=frozenset({handshake.WAY}))
    proof = fed(asker, fed(listener, asker.start()))
    fed(listener, proof)
    return asker, listener, fed(asker, listener.accept())


def fed(side, data):
    out = b""
    while data:
        size = side.need
        assert size, "bytes after the end"
        out += side.feed(data[:size])
        data = data[size:]
    return out


@pytest.mark.parametrize("url", ["tcp://10.0.0.7:26600", "tcp://[fd00::7]:1"])
def test_the_address_that_is_asked_for_arrives(url):
    asker, listener, target = sides(url)
    assert len(target) == way.TARGET_SIZE <= handshake.BUFFER
    assert way.read_target(listener, target).url == url
    assert not asker.open
    fed(asker, way.opened())
    assert asker.open
    assert asker.need == 0


@pytest.mark.parametrize("place", range(way.TARGET_SIZE))
def test_nobody_between_can_name_another_address(place):
    _asker, listener, target = sides("tcp://10.0.0.7:26600")
    changed = bytearray(target)
    changed[place] ^= 1
    with pytest.raises(handshake.HandshakeError):
        way.read_target(listener, bytes(changed))


def test_the_target_of_another_handshake_is_refused():
    _asker, listener, _target = sides("tcp://10.0.0.7:26600")
    _asker, _listener, target = sides("tcp://10.0.0.7:26600")
    with pytest.raises(handshake.HandshakeError, match="not of the peer"):
        way.read_target(listener, target)


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (handshake.refusal("refused"), "refused", "is refused there"),
        (handshake.refusal("unreachable"), "unreachable", "does not reach it"),
        (b"HTTP/1.1", "malformed", "cannot be read"),
        (b"", "unreachable", "closed the connection"),
    ],
)
def test_a_way_that_is_none_is_told(answer, code, text):
    asker, _listener, _target = sides("tcp://10.0.0.7:26600")
    with pytest.raises(handshake.HandshakeError, match=text) as caught:
        asker.feed(answer)
    assert caught.value.code == code


@pytest.fixture
def relays():
    made = Relays()
    yield made
    made.close()


@pytest.fixture
def far():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        yield listening


def led(relays, port):
    """A connection that is led to a port of this host, up to the answer of who leads."""
    near, inner = socket.socketpair()
    near.settimeout(20)
    inner.setblocking(False)
    _asker, listener, target = sides(f"tcp://127.0.0.1:{port}")
    relays.take(inner, listener)
    near.sendall(target)
    return near


def test_bytes_pass_both_ways_and_the_end_of_one_side_is_that_of_the_other(relays, far):
    near = led(relays, far.getsockname()[1])
    other, _ = far.accept()
    assert near.recv(way.OPEN_SIZE) == way.opened()
    other.settimeout(20)
    data = os.urandom(3 << 20)
    for source, sink in ((near, other), (other, near)):
        sending = threading.Thread(target=source.sendall, args=(data,))
        sending.start()
        got = bytearray()
        while len(got) < len(data):
            got += sink.recv(1 << 20)
        sending.join()
        assert got == data
    other.sendall(b"last")
    other.close()
    assert near.recv(4) == b"last"
    assert near.recv(1) == b""
    near.close()


def test_who_does_not_read_holds_up_whoever_writes_to_it_and_nobody_else(relays, far):
    pairs = []
    for _ in range(2):
        near = led(relays, far.getsockname()[1])
        pairs.append((near, far.accept()[0]))
        assert near.recv(way.OPEN_SIZE) == way.opened()
    (slow, unread), (near, other) = pairs
    slow.settimeout(2.0)
    with pytest.raises(TimeoutError):
        slow.sendall(bytes(64 << 20))  # far above what sockets and the relay hold
    near.sendall(b"through")
    other.settimeout(20)
    assert other.recv(7) == b"through"
    for one in (slow, unread, near, other):
        one.close()


def test_a_port_where_nobody_listens_is_told(relays, far):
    port = far.getsockname()[1]
    far.close()
    near = led(relays, port)
    assert near.recv(way.OPEN_SIZE) == handshake.refusal("refused")
    assert near.recv(1) == b""
    near.close()


def test_the_end_of_who_leads_ends_what_passes(far):
    relays = Relays()
    near = led(relays, far.getsockname()[1])
    other, _ = far.accept()
    assert near.recv(way.OPEN_SIZE) == way.opened()
    relays.close()
    assert near.recv(1) == b""
    other.settimeout(20)
    assert other.recv(1) == b""
    near.close()
    other.close()
