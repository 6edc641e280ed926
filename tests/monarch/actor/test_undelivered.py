"""Messages that ask for no answer and reach nobody: they come back to the actor that sent them."""

from __future__ import annotations

import asyncio
import gc
import queue
import warnings

import pytest

import monarch.actor
from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch._actor.ports import Channel, Port
from monarch.actor import this_host
from monarch.errors import SupervisionError
from tests.monarch.actor.rig import Mesh, new_id, process, spawn, stop


class Sender(Actor):
    """Sends to ports and actors; messages that come back go to `back`."""

    def __init__(self, back: Port[tuple[str, str, bool]] | None, handled: bool = True) -> None:
        self.back, self.handled = back, handled

    @endpoint
    def put(self, port: Port[object], what: object = 1) -> None:
        port.send(what)

    @endpoint
    def fail(self, port: Port[object]) -> None:
        port.exception(ValueError("beep"))

    @endpoint
    def call(self, other: object) -> None:
        other.take.broadcast(1)

    @endpoint
    def alive(self) -> bool:
        return True

    def _handle_undeliverable_message(self, message) -> bool:
        if self.back is not None:
            self.back.send((message.endpoint, str(message), message.died))
        return self.handled


class Later(Sender):
    """As `Sender`, on the event loop."""

    @endpoint
    async def wait(self) -> None:
        """Nothing."""


class Waiting(Later):
    """Deals with what comes back in a coroutine that waits for a call to this actor."""

    def __init__(self, back: Port[tuple[str, str, bool]], handled: bool = True) -> None:
        super().__init__(back, handled)
        self.opened = asyncio.Event()
        self.deals = False

    async def _handle_undeliverable_message(self, message) -> bool:
        assert not self.deals, "one after the other"
        self.deals = True
        super()._handle_undeliverable_message(message)
        await self.opened.wait()
        self.deals = False
        return self.handled

    @endpoint
    async def put_and_wait(self, port: Port[object]) -> None:
        port.send(1)
        await self.opened.wait()

    @endpoint
    async def open(self) -> None:
        self.opened.set()


class Taker(Actor):
    @endpoint
    def take(self, what: object) -> None:
        """Nothing."""


@pytest.fixture
def failures(monkeypatch):
    found = queue.SimpleQueue()
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", found.put)
    return found


def closed_port():
    """A port whose receiver is gone."""
    port, receiver = Channel.open()
    del receiver
    gc.collect()
    return port


@pytest.mark.parametrize("cls", [Sender, Later])
@pytest.mark.parametrize("way", ["send", "large", "fail"])
def test_a_message_to_a_port_that_nobody_receives_from_comes_back(procs, cls, way):
    port, back = Channel.open()
    sender = spawn(cls, port, procs=procs)
    closed = closed_port()
    if way == "fail":
        sender.fail.call_one(closed).get(timeout=20)
    else:
        sender.put.call_one(closed, 1 if way == "send" else b"x" * 200_000).get(timeout=20)
    name, text, died = back.recv().get(timeout=20)
    assert (name, died) == ("", False)
    assert "a message to a port was not delivered" in text
    assert "return_undeliverable = False" in text
    assert sender.alive.call_one().get(timeout=20)


def test_the_second_message_to_a_port_for_one_comes_back(procs):
    port, back = Channel.open()
    sender = spawn(Sender, port, procs=procs)
    once, receiver = Channel.open(once=True)
    sender.put.call_one(once, 1).get(timeout=20)
    sender.put.call_one(once, 2).get(timeout=20)
    assert "not delivered" in back.recv().get(timeout=20)[1]
    assert receiver.recv().get(timeout=20) == 1


def test_a_port_that_does_not_return_drops_what_it_cannot_deliver(procs):
    port, back = Channel.open()
    sender = spawn(Sender, port, procs=procs)
    silent, noisy = closed_port(), closed_port()
    silent.return_undeliverable = False
    sender.put.call_one(silent).get(timeout=20)
    sender.put.call_one(noisy).get(timeout=20)
    back.recv().get(timeout=20)
    with pytest.raises(TimeoutError):
        back.recv().get(timeout=0.05)


def test_a_broadcast_to_an_actor_that_does_not_exist_comes_back(procs):
    port, back = Channel.open()
    sender = spawn(Sender, port, procs=procs)
    nowhere = Mesh(Taker, procs or [process().id], new_id(), "nowhere")
    sender.call.call_one(nowhere).get(timeout=20)
    name, text, died = back.recv().get(timeout=20)
    assert (name, died) == ("take", False)
    assert "there is no such actor" in text


def test_a_broadcast_to_an_actor_that_was_stopped_comes_back_as_that(procs):
    port, back = Channel.open()
    sender, taker = spawn(Sender, port, procs=procs), spawn(Taker, procs=procs)
    stop(taker)
    sender.call.call_one(taker).get(timeout=20)
    name, text, died = back.recv().get(timeout=20)
    assert (name, died) == ("take", True)
    assert "has ended" in text


@pytest.mark.parametrize("cls", [Sender, Later])
def test_an_actor_that_does_not_deal_with_it_fails_and_its_owner_is_told(procs, cls, failures):
    sender = spawn(cls, None, handled=False, procs=procs)
    sender.put.call_one(closed_port()).get(timeout=20)
    failure = failures.get(timeout=20)
    assert failure.kind == "undeliverable"
    assert "could not deliver a message" in str(failure)
    assert "was not delivered to port" in failure.report()
    with pytest.raises(SupervisionError):
        sender.alive.call_one().get(timeout=20)


def test_an_async_actor_deals_with_it_while_it_goes_on(procs):
    port, back = Channel.open()
    sender = spawn(Waiting, port, procs=procs)
    for _ in range(3):
        sender.put.call_one(closed_port()).get(timeout=20)
    assert back.recv().get(timeout=20)[2] is False
    assert sender.alive.call_one().get(timeout=20)
    sender.open.call_one().get(timeout=20)
    for _ in range(2):
        back.recv().get(timeout=20)
    assert sender.alive.call_one().get(timeout=20)


def test_an_async_actor_deals_with_it_while_an_endpoint_waits(procs):
    port, back = Channel.open()
    sender = spawn(Waiting, port, procs=procs)
    waits = sender.put_and_wait.call_one(closed_port())
    back.recv().get(timeout=20)
    assert not waits.done()


def test_an_actor_that_ends_has_begun_nothing_whose_turn_had_not_come(procs):
    port, back = Channel.open()
    sender = spawn(Waiting, port, procs=procs)
    for _ in range(2):
        sender.put.call_one(closed_port()).get(timeout=20)
    back.recv().get(timeout=20)
    assert sender.alive.call_one().get(timeout=20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stop(sender)
        gc.collect()
    assert [str(one.message) for one in caught] == []


def test_an_async_actor_that_does_not_deal_with_it_fails(procs, failures):
    port, _back = Channel.open()
    sender = spawn(Waiting, port, handled=False, procs=procs)
    sender.open.call_one().get(timeout=20)
    sender.put.call_one(closed_port()).get(timeout=20)
    assert failures.get(timeout=20).kind == "undeliverable"
    with pytest.raises(SupervisionError):
        sender.alive.call_one().get(timeout=20)


def test_who_died_is_no_fault_of_an_actor_that_sends_to_it(failures):
    procs = this_host().spawn_procs(per_host={"gpus": 2})
    takers = procs.spawn("takers", Taker)
    sender = procs.slice(gpus=0).spawn("sender", Sender, None, handled=False)
    takers.initialized.get(timeout=60)
    procs.spawn("killed", Killed).slice(gpus=1).die.broadcast()
    assert failures.get(timeout=60).kind == "signal"
    for _ in range(3):
        sender.call.call_one(takers).get(timeout=20)
    assert sender.alive.call_one().get(timeout=20)
    assert failures.empty()
    procs.stop().get(timeout=60)


def test_an_actor_is_told_of_what_it_sends_to_a_process_that_died(failures):
    port, back = Channel.open()
    procs = this_host().spawn_procs(per_host={"gpus": 2})
    takers = procs.spawn("takers", Taker)
    sender = procs.slice(gpus=0).spawn("sender", Sender, port)
    takers.initialized.get(timeout=60)
    procs.spawn("killed", Killed).slice(gpus=1).die.broadcast()
    failures.get(timeout=60)
    sender.call.call_one(takers).get(timeout=20)
    assert back.recv().get(timeout=20)[::2] == ("take", True)
    procs.stop().get(timeout=60)


def test_the_program_is_warned_of_a_message_of_its_own_that_reaches_nobody(recwarn):
    closed_port().send(1)
    port, receiver = Channel.open()
    port.send(1)
    receiver.recv().get(timeout=20)
    for _ in range(1000):
        if recwarn.list:
            break
        spawn(Taker).take.call_one(1).get(timeout=20)
    warning = recwarn.pop(RuntimeWarning)
    assert "a message to a port was not delivered" in str(warning.message)
    assert warning.filename == "monarch"


class Killed(Actor):
    @endpoint
    def die(self) -> None:
        import os  # noqa: PLC0415 - in the child
        import signal  # noqa: PLC0415

        os.kill(os.getpid(), signal.SIGKILL)
