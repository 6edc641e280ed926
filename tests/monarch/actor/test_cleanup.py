"""`__cleanup__` has so much time, and no more."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch._actor.ports import Channel, Port
from tests.monarch.actor.rig import spawn, stop


class Plain(Actor):
    """Its `__cleanup__` takes the seconds it was given."""

    def __init__(self, seconds: float, port: Port[str]) -> None:
        self.seconds, self.port = seconds, port
        os.environ["MONARCH_CLEANUP_TIMEOUT"] = "300ms"

    @endpoint
    def work(self) -> int:
        return 1

    def __cleanup__(self, error: BaseException | None) -> None:
        try:
            time.sleep(self.seconds)
            self.port.send("through")
        except BaseException as given_up:
            self.port.send(type(given_up).__name__)
            raise


class Async(Actor):
    def __init__(self, seconds: float, port: Port[str]) -> None:
        self.seconds, self.port = seconds, port
        os.environ["MONARCH_CLEANUP_TIMEOUT"] = "300ms"

    @endpoint
    async def work(self) -> int:
        return 1

    async def __cleanup__(self, error: BaseException | None) -> None:
        try:
            await asyncio.sleep(self.seconds)
            self.port.send("through")
        except BaseException as given_up:
            self.port.send(type(given_up).__name__)
            raise


class Waited(Plain):
    """Another's call is cancelled while it cleans up."""

    def __cleanup__(self, error: BaseException | None) -> None:
        self.port.send("begun")
        super().__cleanup__(error)


class Slow(Actor):
    @endpoint
    def work(self, port: Port[str]) -> None:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:
            port.send("cancelled")
            raise


class Late(Plain):
    def __cleanup__(self, error: BaseException | None) -> None:
        raise TimeoutError("of its own")


@pytest.mark.parametrize(("kind", "word"), [(Plain, "Interrupted"), (Async, "CancelledError")])
def test_a_cleanup_that_takes_too_long_is_given_up_and_the_stop_says_so(own_child, kind, word):
    port, receiver = Channel.open()
    actor = spawn(kind, 60.0, port, procs=[own_child], name="slow")
    assert actor.work.call_one().get(timeout=20) == 1
    began = time.monotonic()
    with pytest.raises(
        RuntimeError, match=r"__cleanup__ of actor 'slow' was given up after 0\.3 s"
    ):
        stop(actor)
    assert time.monotonic() - began < 20
    assert receiver.recv().get(timeout=20) == word
    assert spawn(kind, 0.0, port, procs=[own_child]).work.call_one().get(timeout=20) == 1


@pytest.mark.parametrize("kind", [Plain, Async])
def test_a_cleanup_in_time_ends_by_itself(own_child, kind):
    port, receiver = Channel.open()
    actor = spawn(kind, 0.0, port, procs=[own_child])
    actor.work.call_one().get(timeout=20)
    stop(actor)
    assert receiver.recv().get(timeout=20) == "through"


def test_a_call_that_is_cancelled_meanwhile_is_another_thing(own_child):
    port, receiver = Channel.open()
    actor = spawn(Waited, 0.2, port, procs=[own_child])
    actor.work.call_one().get(timeout=20)
    ending = spawn(Slow, procs=[own_child]).work.options(timeout=0.1).call_one(port)
    stop(actor)
    found = {receiver.recv().get(timeout=20) for _ in range(3)}
    assert found == {"begun", "through", "cancelled"}
    with pytest.raises(TimeoutError):
        ending.get()


def test_a_timeout_that_a_cleanup_raises_itself_stays_what_it_was(own_child):
    port, _receiver = Channel.open()
    actor = spawn(Late, 0.0, port, procs=[own_child])
    actor.work.call_one().get(timeout=20)
    with pytest.raises(RuntimeError, match="of its own"):
        stop(actor)
