"""Ports and channels, explicit reply ports, folds, and messages whose replies go to a port."""

from __future__ import annotations

import asyncio
import operator
import threading

import pytest

from monarch._actor.actor import Actor
from monarch._actor.decorators import concurrent_endpoint, endpoint
from monarch._actor.fold import Accumulator, send
from monarch._actor.ports import Channel, Port
from monarch.errors import ActorError, SupervisionError
from tests.monarch.actor.rig import process, spawn


class Worker(Actor):
    def __init__(self) -> None:
        self.kept: list[Port[str]] = []

    @endpoint
    def count(self, port: Port[int], until: int) -> None:
        for number in range(until):
            port.send(number)

    @endpoint
    def complain(self, port: Port[int]) -> None:
        port.exception(ValueError("beep"))

    @endpoint(explicit_response_port=True)
    def answer(self, port: Port[str], text: str) -> str:
        port.send(text.upper())
        return "ignored"

    @endpoint(explicit_response_port=True)
    def keep(self, port: Port[str]) -> None:
        self.kept.append(port)

    @endpoint
    def give_all(self, text: str) -> int:
        for port in self.kept:
            port.send(text)
        return len(self.kept)

    @endpoint(explicit_response_port=True)
    def refuse(self, port: Port[str]) -> None:
        port.exception(KeyError("no"))

    @endpoint(explicit_response_port=True)
    def fall(self, port: Port[str]) -> None:
        raise RuntimeError(f"before it was sent to {port}")

    @endpoint
    def square(self, number: int) -> int:
        return number * number


class Later(Actor):
    @concurrent_endpoint(explicit_response_port=True)
    async def answer(self, port: Port[str], text: str) -> None:
        await asyncio.sleep(0)
        port.send(text.upper())

    @endpoint(explicit_response_port=True)
    async def fall(self, port: Port[str]) -> None:
        await asyncio.sleep(0)
        raise RuntimeError(f"before it was sent to {port}")


def test_messages_of_a_port_come_in_order(procs):
    port, receiver = Channel.open()
    spawn(Worker, procs=procs).count.broadcast(port, 500)
    assert [receiver.recv().get(timeout=20) for _ in range(500)] == list(range(500))


def test_a_wait_that_timed_out_takes_no_message():
    port, receiver = Channel.open()
    with pytest.raises(TimeoutError, match=r"no message within 0\.01 s"):
        receiver.recv().get(timeout=0.01)
    port.send("a")
    assert receiver.recv().get(timeout=20) == "a"


def test_an_exception_that_was_sent_is_raised_by_the_receiver(procs):
    port, receiver = Channel.open()
    spawn(Worker, procs=procs).complain.broadcast(port)
    with pytest.raises(ValueError, match="beep"):
        receiver.recv().get(timeout=20)


def test_what_is_no_exception_is_refused_where_it_is_sent():
    port, receiver = Channel.open()
    with pytest.raises(TypeError, match=r"sends an exception, not 'text'; send\(\) sends values"):
        port.exception("text")
    port.send("text")
    assert receiver.recv().get(20) == "text"


def test_a_channel_for_one_message_refuses_another_at_both_ends(procs):
    port, receiver = Channel.open(once=True)
    spare = receiver.recv()
    port.send("first")
    for send_more in (lambda: port.send("second"), lambda: port.exception(ValueError())):
        with pytest.raises(RuntimeError, match="has sent the one message that its channel takes"):
            send_more()
    assert receiver.recv().get(timeout=20) == "first"
    for late in (receiver.recv(), spare, receiver.ranked().recv()):
        with pytest.raises(ValueError, match="one message of this channel has been received"):
            late.get(timeout=20)
    port, receiver = Channel.open(once=True)
    with pytest.raises(ActorError, match="has sent the one message"):
        spawn(Worker, procs=procs).count.call(port, 2).get(timeout=20)
    assert receiver.recv().get(timeout=20) == 0


def test_a_channel_is_awaited(child):
    port, receiver = Channel.open()

    async def main() -> list[int]:
        spawn(Worker, procs=[child]).count.broadcast(port, 50)
        return [await receiver.recv() for _ in range(50)]

    assert asyncio.run(main()) == list(range(50))


@pytest.mark.parametrize("cls", [Worker, Later])
def test_an_explicit_port_answers_in_place_of_the_return_value(procs, cls):
    actor = spawn(cls, procs=procs)
    assert actor.answer.call_one("a").get(timeout=20) == "A"
    assert actor.answer.call(text="b").get(timeout=20) == ["B"]
    actor.answer.broadcast("nobody")
    assert actor.answer.call_one("c").get(timeout=20) == "C"


def test_an_explicit_port_answers_after_its_endpoint_has_returned(procs):
    actor = spawn(Worker, procs=procs)
    futures = [actor.keep.call_one() for _ in range(3)]
    assert actor.give_all.call_one("now").get(timeout=20) == 3
    assert [future.get(timeout=20) for future in futures] == ["now"] * 3
    with pytest.raises(KeyError, match="no"):
        actor.refuse.call_one().get(timeout=20)


@pytest.mark.report("82")
@pytest.mark.parametrize("cls", [Worker, Later])
def test_an_endpoint_with_a_port_that_raises_before_it_answers_fails_its_callers(procs, cls):
    actor = spawn(cls, procs=procs)
    with pytest.raises(SupervisionError, match="before it was sent"):
        actor.fall.call_one().get(timeout=20)
    with pytest.raises(SupervisionError, match="before it was sent"):
        actor.answer.call_one("x").get(timeout=20)


def test_replies_of_a_message_go_to_the_port_that_is_given(child):
    mesh = spawn(Worker, procs=[process().id, child])
    port, receiver = Channel.open_ranked()
    send(mesh.square, (3,), {}, port)
    found = {receiver.recv().get(timeout=20) for _ in range(2)}
    assert found == {(0, 9), (1, 9)}
    send(mesh.square, (), {"number": 4}, port, "choose")
    assert receiver.recv().get(timeout=20)[1] == 16
    send(mesh.square, (1,), {})
    with pytest.raises(ValueError, match='"all" or "choose"'):
        send(mesh.square, (1,), {}, port, "some")
    with pytest.raises(TypeError, match="required argument"):
        send(mesh.square, (), {}, port)


def test_what_is_no_endpoint_no_port_or_no_function_is_refused(child):
    actor = spawn(Worker, procs=[child])
    for wrong in (lambda: Accumulator(3, 0, max), lambda: send(actor, (), {})):
        with pytest.raises(TypeError, match="takes an endpoint first"):
            wrong()
    with pytest.raises(TypeError, match="combine takes two values"):
        Accumulator(actor.square, 0, 7)
    with pytest.raises(TypeError, match="port is a Port"):
        send(actor.square, (3,), {}, 7)


def test_results_are_folded_as_they_come(child):
    mesh = spawn(Worker, procs=[process().id, child, child])
    assert Accumulator(mesh.square, 100, operator.add).accumulate(3).get(timeout=20) == 127


def test_a_port_is_used_by_several_threads():
    port, receiver = Channel.open()
    threads = [
        threading.Thread(target=lambda: [port.send(number) for number in range(100)])
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    found = sorted(receiver.recv().get(timeout=20) for _ in range(300))
    for thread in threads:
        thread.join()
    assert found == sorted([*range(100)] * 3)
