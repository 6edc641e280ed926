"""What the engine tells of actors that are busy, and of calls that hold them up."""

from __future__ import annotations

import importlib.util
import os
import socket

import pytest

CREATE = 1


@pytest.fixture
def engine(request):
    if importlib.util.find_spec("monarch._core") is None:
        request.getfixturevalue("core")
    made = importlib.import_module("monarch._core").Engine(11)
    yield made
    made.stop()


@pytest.fixture
def worker(engine):
    return engine.main_worker()


def create(engine, worker, actor):
    inbox = engine.call(engine.targets([11], [actor]), "", b"", None, 0, b"", CREATE)
    (*_, request) = worker.next(5)
    request.reply(0, b"", None)
    request.finish()
    return inbox


def call(engine, actor, endpoint, sender):
    return engine.call(engine.targets([11], [actor]), endpoint, b"", None, sender, b"", 0)


def read(fd):
    from monarch._proc.boards import read_page  # noqa: PLC0415 - needs the package

    return [(one.actor, one.endpoint) for one in read_page(os.pread(fd, 4096, 4096))]


@pytest.mark.promise("S07")
def test_what_is_handled_is_on_the_board_until_it_is_answered(engine, worker):
    fd = os.memfd_create("board")
    os.ftruncate(fd, 8192)
    engine.keep_board(fd, 1)
    call_of_create = engine.call(engine.targets([11], [5]), "", b"", None, 0, b"", CREATE)
    (*_, request) = worker.next(5)
    assert read(fd) == [(5, "__init__")]
    request.reply(0, b"", None)
    request.finish()
    assert read(fd) == []
    assert call_of_create.arrived == 1
    answer = call(engine, 5, "step", 0)
    (*_, request) = worker.next(5)
    request.finish()
    assert read(fd) == [(5, "step")]
    request.reply(0, b"", None)
    assert read(fd) == []
    assert answer.arrived == 1
    os.close(fd)


class Waiting:
    """An actor that handles a call and, in it, waits for another."""

    def __init__(self, engine, worker, actor, target):
        create(engine, worker, actor)
        self.inbox = call(engine, actor, "run", 0)
        (*_, self.request) = worker.next(5)
        self.asked = call(engine, target, "step", actor)
        self.token = object()
        self.asked.subscribe(worker, 1, self.token)
        self.awaits = (self.asked.id, 0, False, [id(self.token)], [(11, target)])


def test_a_call_is_held_up_by_an_endpoint_that_waits_itself(engine, worker):
    one = Waiting(engine, worker, 5, 5)
    found = engine.blocked(5, 11, one.asked.id)
    assert found == ("run", "step", [one.awaits])
    assert engine.blocked(5) == ("run", "", [one.awaits])
    assert engine.blocked(5, 11, 999) is None
    one.asked.unsubscribe(one.token)
    assert engine.blocked(5) is None


def test_an_endpoint_that_lets_the_next_message_begin_holds_nothing_up(engine, worker):
    one = Waiting(engine, worker, 5, 5)
    one.request.finish()
    assert engine.blocked(5) is None


def test_all_that_an_actor_waits_for_is_told_with_who_waits(engine, worker):
    one = Waiting(engine, worker, 5, 5)
    other, token = call(engine, 5, "step", 5), object()
    other.subscribe(worker, 1, token)
    _running, _called, awaited = engine.blocked(5, 11, one.asked.id)
    assert sorted(awaited) == sorted([one.awaits, (other.id, 0, False, [id(token)], [(11, 5)])])


def test_who_waits_for_one_of_several_answers_misses_nobody(engine, worker):
    one = Waiting(engine, worker, 5, 5)
    one.asked.unsubscribe(one.token)
    both = engine.call(engine.targets([11, 11], [5, 5]), "step", b"", None, 5, b"", 0)
    both.subscribe(worker, 1, one.token)
    assert engine.blocked(5)[2] == [(both.id, 0, False, [id(one.token)], [])]
    both.unsubscribe(one.token)
    both.subscribe(worker, 2, one.token)
    assert engine.blocked(5)[2] == [(both.id, 0, False, [id(one.token)], [(11, 5), (11, 5)])]


def test_calls_that_actors_wait_for_are_reported_again_and_again(engine, worker):
    Waiting(engine, worker, 5, 5)
    assert engine.control() == ("stuck", 5)
    assert engine.control() == ("stuck", 5)


def test_an_actor_that_waits_for_another_process_is_reported_with_it(engine, worker):
    ours, theirs = socket.socketpair()
    engine.add_link(22, ours.detach())
    create(engine, worker, 5)
    call(engine, 5, "run", 0)
    worker.next(5)
    asked = engine.call(engine.targets([22], [7]), "step", b"", None, 5, b"", 0)
    asked.subscribe(worker, 1, "token")
    assert engine.blocked(5)[2][0][4] == [(22, 7)]
    theirs.close()
