"""The control plane: what control threads tell and ask each other."""

from __future__ import annotations

import os
import threading

import pytest

from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch._actor.pickling import pack
from tests.monarch.actor.rig import process, spawn


class Teacher(Actor):
    """Gives its process handlers, and reports what they were told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        here = process()
        here.on("teach", lambda _peer, body: self.told.append(body))
        here.on("double", lambda _peer, body: body * 2)
        here.on("refuse", refuse)

    @endpoint
    def take_told(self) -> list[object]:
        return self.told


class StrangeError(Exception):
    def __init__(self) -> None:
        super().__init__("strange")
        self.lock = threading.Lock()


def refuse(_peer: int, body: object) -> None:
    raise StrangeError if body == "strange" else KeyError(body)


@pytest.fixture
def teacher(child):
    actor = spawn(Teacher, procs=[child])
    actor.created.get(timeout=20)
    return actor


def test_what_is_told_comes_in_order_with_calls(child, teacher):
    for number in range(50):
        process().tell(child, "teach", number)
    assert process().ask(child, "double", 4, timeout=20) == 8
    assert teacher.take_told.call_one().get(timeout=20) == list(range(50))


def test_an_answer_can_be_an_error(child, teacher):
    with pytest.raises(KeyError, match="no"):
        process().ask(child, "refuse", "no", timeout=20)
    with pytest.raises(RuntimeError, match="StrangeError: strange"):
        process().ask(child, "refuse", "strange", timeout=20)
    with pytest.raises(LookupError, match="no handler for 'nothing'"):
        process().ask(child, "nothing", None, timeout=20)
    assert teacher is not None


def test_asking_oneself_works_and_in_the_control_thread_is_refused():
    here = process()
    here.on("again", lambda _peer, _body: here.ask(here.id, "again", None))
    with pytest.raises(RuntimeError, match="wait for itself"):
        here.ask(here.id, "again", None, timeout=20)


def test_what_is_asked_of_a_process_that_ends_is_an_error(child, teacher):
    gone = 0xDEAD0001
    here = process()
    future = here.asking(child, "unheard of", None)
    asked = here.asking(gone, "double", 1)
    here.fail_peer(gone, pack(ConnectionError("gone")))
    with pytest.raises(ConnectionError, match="is gone"):
        asked.get(timeout=20)
    with pytest.raises(ConnectionError, match="is gone"):
        here.ask(gone, "double", 1, timeout=20)
    assert here.ask_briefly(gone, "double", 1, timeout=20) is None
    with pytest.raises(LookupError):
        future.get(timeout=20)
    assert teacher is not None


def test_a_descriptor_is_read_by_the_control_thread_until_it_is_forgotten():
    reading, writing = os.pipe()
    here, found = process(), threading.Semaphore(0)
    read: list[bytes] = []

    def readable() -> None:
        read.append(os.read(reading, 1))
        found.release()

    here.on_readable(reading, readable)
    for letter in (b"a", b"b", b"c"):
        os.write(writing, letter)
        assert found.acquire(timeout=20)
    here.forget(reading)
    assert read == [b"a", b"b", b"c"]
    os.close(reading)
    os.close(writing)
