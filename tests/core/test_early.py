"""Messages that reach a process before the one that makes their actor."""

from __future__ import annotations

import importlib
import importlib.util
import socket

import pytest

CREATE, STOP = 1, 2
UNDELIVERED = 4
HERE, THERE = 21, 22


@pytest.fixture
def engines(request):
    if importlib.util.find_spec("monarch._core") is None:
        request.getfixturevalue("core")
    core = importlib.import_module("monarch._core")
    here, there = core.Engine(HERE), core.Engine(THERE)
    first, second = socket.socketpair()
    here.add_link(THERE, first.detach())
    there.add_link(HERE, second.detach())
    yield here, there
    here.stop()
    there.stop()


def send(engine, data, flags=0):
    return engine.call(engine.targets([THERE], [7]), "", data, None, 0, b"", flags)


def handled(worker):
    (_kind, _state, _name, data, _buffers, request) = worker.next(10)
    request.reply(0, data, None)
    request.finish()
    return bytes(data)


def test_calls_wait_for_the_actor_to_be_made_and_keep_their_order(engines):
    here, there = engines
    worker = there.main_worker()
    calls = [send(here, b"first"), send(here, b"second")]
    assert not calls[0].wait(1, 0.05)
    made = send(here, b"made", CREATE)
    assert [handled(worker) for _ in range(3)] == [b"made", b"first", b"second"]
    assert made.wait(1, 10)
    assert [call.wait(1, 10) for call in calls] == [True, True]


def test_a_call_that_was_given_up_while_it_waited_is_never_handled(engines):
    here, there = engines
    worker = there.main_worker()
    given_up, kept = send(here, b"given up"), send(here, b"kept")
    given_up.cancel()
    send(here, b"made", CREATE)
    assert [handled(worker) for _ in range(2)] == [b"made", b"kept"]
    assert kept.wait(1, 10)


def test_stopping_an_actor_that_is_not_there_does_not_wait(engines):
    here, _there = engines
    stopped = send(here, b"", STOP)
    assert stopped.wait(1, 10)
    assert stopped.get(0)[1] == UNDELIVERED


@pytest.mark.slow
def test_a_call_of_an_actor_that_nobody_makes_ends_as_undelivered(engines):
    here, _there = engines
    call = send(here, b"lost")
    assert not call.wait(1, 1.0)
    assert call.wait(1, 30)
    _rank, status, data, _buffers = call.get(0)
    assert (status, bytes(data)) == (UNDELIVERED, b"there is no such actor")
