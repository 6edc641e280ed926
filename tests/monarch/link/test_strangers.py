"""Strangers at the gate: what they may cost, how long they stay, and that they keep nobody out."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time

import pytest

from monarch._link import encryption, guests, handshake, route
from monarch._link.address import parse
from tests.monarch.link.harness import SECRET, drained, greet, raw
from tests.watching import until

_HELLO = handshake.Dialer(SECRET, 1, b"unix \0x").start()


@pytest.mark.promise("R07")
@pytest.mark.parametrize(
    "data",
    [b"", b"M", _HELLO[:8], _HELLO[:-1], b"GET / HTTP/1.1\r\n\r\n", os.urandom(64), bytes(4096)],
    ids=["nothing", "byte", "head", "cut", "http", "random", "zeros"],
)
def test_a_stranger_is_turned_away_and_the_next_is_served(process, name, data):
    b, at_b = process(2)
    b.listen(parse(name))
    stranger = raw(name)
    stranger.sendall(data)
    stranger.shutdown(socket.SHUT_WR)
    assert len(drained(stranger)) <= 8
    a, _ = process(1)
    assert a.connect(parse(name), seconds=20) == 2
    at_b.link_to(1)
    assert list(at_b.links) == [1]


def test_silent_connections_are_bounded_in_number_and_time(process, name, monkeypatch):
    """Twice as many as there is room for: they hold no more than that, and no longer."""
    monkeypatch.setattr(handshake, "SECONDS", 0.3)
    b, at_b = process(2)
    b.listen(parse(name))
    start = time.monotonic()
    silent = [raw(name) for _ in range(2 * guests.STRANGERS - 40)]
    for sock in silent:
        sock.sendall(_HELLO[:7])
    seen = []
    admit = b._guests.admit

    def asked():
        seen.append(len(list(b._guests.waits())))

    monkeypatch.setattr(b._guests, "admit", lambda: (admit(), asked()))
    honest = raw(name)
    greet(honest, name)
    at_b.link_to(3)
    assert 0.3 <= time.monotonic() - start < 5
    assert max(seen) == guests.STRANGERS
    for sock in silent:
        assert drained(sock) == b""
    honest.close()


@pytest.fixture
def patient(monkeypatch):
    """Strangers may stay for a minute: where others get in, it is not because these had to go."""
    monkeypatch.setattr(handshake, "SECONDS", 60.0)
    return monkeypatch


def strangers(bound, count, source):
    found = [raw(bound, source) for _ in range(count)]
    for sock in found:
        sock.sendall(_HELLO[:7])
    return found


def end(socks):
    for sock in socks:
        sock.close()


@pytest.mark.promise("X07")
def test_who_sends_a_byte_now_and_then_is_cut_when_its_time_is_over(process, monkeypatch):
    monkeypatch.setattr(handshake, "SECONDS", 0.5)
    b, at_b = process(2)
    bound = b.listen(parse("tcp://127.0.0.1:0"))
    began = time.monotonic()
    slow = raw(bound)
    cut = threading.Event()

    def trickle():
        for byte in _HELLO:
            try:
                slow.sendall(bytes([byte]))
            except OSError:
                return
            if cut.wait(0.05):
                return

    sender = threading.Thread(target=trickle)
    sender.start()
    assert drained(slow) == b""
    assert 0.4 < time.monotonic() - began < 10
    cut.set()
    sender.join()
    assert not b._guests
    assert at_b.links == {}


@pytest.mark.promise("X07")
@pytest.mark.usefixtures("patient")
def test_strangers_of_one_host_do_not_keep_out_who_comes_from_another(process):
    b, at_b = process(2)
    bound = b.listen(parse("tcp://127.0.0.1:0"))
    held = strangers(bound, 3 * guests.STRANGERS, "127.0.0.2")
    for own in range(10, 20):
        a, _ = process(own)
        began = time.monotonic()
        assert a.connect(bound, seconds=20) == 2
        assert time.monotonic() - began < 10
        at_b.link_to(own)
        assert len(b._guests._guests) <= guests.STRANGERS
    end(held)


@pytest.mark.promise("X07")
def test_strangers_of_the_same_host_give_way_after_their_grace(process, patient):
    patient.setattr(guests, "GRACE", 0.3)
    b, at_b = process(2)
    bound = b.listen(parse("tcp://127.0.0.1:0"))
    held = strangers(bound, 3 * guests.STRANGERS, None)
    a, _ = process(3)
    assert a.connect(bound, seconds=20) == 2
    at_b.link_to(3)
    end(held)


@pytest.mark.promise("X07")
@pytest.mark.usefixtures("patient")
def test_strangers_from_the_network_do_not_keep_out_processes_of_this_host(process, name):
    b, at_b = process(2)
    bound = b.listen(parse("tcp://127.0.0.1:0"))
    b.listen(parse(name))
    held = strangers(bound, 2 * guests.STRANGERS, "127.0.0.2")
    a, _ = process(3)
    assert a.connect(parse(name), seconds=20) == 2
    at_b.link_to(3)
    end(held)


@pytest.mark.promise("F01")
def test_a_connection_that_cannot_be_handed_over_for_want_of_descriptors_ends_and_the_next_is(
    process,
):
    b, at_b = process(2)
    bound = f"tcp://127.0.0.1:{b.listen(parse('tcp://0.0.0.0:0')).port}"
    at_b.links[5], other = socket.socketpair()
    words = route.route(5, encryption.mode())
    first = raw(bound)
    first.sendall(words[:1])
    until(lambda: list(b._guests.waits()))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, before[1]))
    try:
        first.sendall(words[1:])
        assert drained(first) == b""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert at_b.handed == []
    second = raw(bound)
    second.sendall(words)
    assert drained(second) == b""
    assert at_b.handed == [5]
    other.close()


@pytest.mark.promise("X07")
@pytest.mark.usefixtures("patient")
def test_connections_that_are_handed_over_have_no_more_room_than_others(process):
    b, _ = process(2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held = [socket.create_connection(listener.getsockname()) for _ in range(100)]
        for _ in held:
            b.take_over(listener.accept()[0].detach(), b"127.0.0.1")
        gone = 0
        for sock in held:
            sock.settimeout(0.2)
            try:
                gone += sock.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionResetError:
                gone += 1
    assert gone == len(held) - guests.STRANGERS
    end(held)
