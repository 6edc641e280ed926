"""Links of real processes: dead ones that are dialled, and strangers at a process's own door."""

from __future__ import annotations

import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import monarch.actor
from monarch._actor.process import process
from monarch._link import handshake
from monarch._link.address import of_proc, parse
from monarch.actor import Actor, SupervisionError, current_rank, endpoint, this_host


class Peer(Actor):
    @endpoint
    def pid(self) -> int:
        return os.getpid()

    @endpoint
    def call(self, other) -> tuple[str, float]:
        start = time.monotonic()
        try:
            other.pid.call_one().get(60)
        except SupervisionError as error:
            return type(error).__name__, time.monotonic() - start
        return "answered", time.monotonic() - start

    @endpoint
    def reach(self, others) -> int:
        return len(set(others.pid.call().get(60).values()))

    @endpoint
    def rank(self) -> int:
        return current_rank().rank


@pytest.fixture
def failures(monkeypatch):
    found: list = []
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", found.append, raising=False)
    return found


@pytest.fixture
def procs(failures):
    made = this_host().spawn_procs(per_host={"gpus": 4})
    yield made
    made.stop().get(30)


@pytest.fixture
def peers(procs):
    return procs.spawn("peers", Peer)


@pytest.fixture
def others(procs):
    return procs.spawn("others", Peer)


@pytest.mark.promise("R09")
def test_a_call_to_a_dead_process_that_was_never_linked_ends_soon(peers):
    pids = peers.pid.call().get(60)
    os.kill(pids.item(gpus=3), signal.SIGKILL)
    kind, seconds = peers.slice(gpus=0).call.call_one(peers.slice(gpus=3)).get(60)
    assert kind == "ActorCrashError"
    assert seconds < 5


def test_processes_that_all_call_each_other_at_once_reach_each_other(peers, others):
    assert set(peers.reach.call(others).get(60).values()) == {4}
    assert list(peers.rank.call().get(60).values()) == [0, 1, 2, 3]


def _knock(data: bytes) -> bytes:
    """What a process of this program answers to a stranger."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(20)
    sock.connect("\0" + parse(of_proc(process().id)).path[1:])
    sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)
    found = b""
    try:
        while chunk := sock.recv(4096):
            found += chunk
    except ConnectionResetError:
        pass
    sock.close()
    return found


@pytest.mark.promise("R07", "X01")
def test_strangers_at_the_door_disturb_nobody(peers):
    peers.pid.call().get(60)
    strangers = [os.urandom(size) for size in (0, 1, 7, 8, 9, 64, 4096, 65536)] * 8
    strangers += [handshake.Dialer.start.__doc__ or b"", b"GET / HTTP/1.1\r\n\r\n"]
    strangers = [one if isinstance(one, bytes) else one.encode() for one in strangers]
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(_knock, strangers)
        assert list(peers.rank.call().get(60).values()) == [0, 1, 2, 3]
        assert all(answer in {b"", handshake.refusal("malformed")} for answer in answers)
    assert list(peers.rank.call().get(60).values()) == [0, 1, 2, 3]


def test_a_full_door_is_not_a_closed_one(peers, others):
    """As many silent connections as wait at a time: processes still find each other."""
    silent = []
    for _ in range(40):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect("\0" + parse(of_proc(process().id)).path[1:])
        silent.append(sock)
    assert set(peers.reach.call(others).get(60).values()) == {4}
    for sock in silent:
        sock.close()
