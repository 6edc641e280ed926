"""Deadlines of calls: what is late fails here and is ended on the far side."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest

from monarch._actor.actor import Actor
from monarch._actor.context import current_rank
from monarch._actor.decorators import concurrent_endpoint, endpoint
from monarch._actor.ports import Channel, Port
from tests.monarch.actor.rig import process, spawn


class Busy(Actor):
    def __init__(self, port: Port[str]) -> None:
        self.port = port
        self.done: list[str] = []

    @endpoint
    def spin(self) -> None:
        try:
            self.port.send("runs")
            while True:
                self.done.append("spin")
        finally:
            self.port.send("ended")
            self.done.clear()

    @endpoint
    def sleep(self) -> None:
        try:
            self.port.send("runs")
            time.sleep(60)
        finally:
            self.port.send("ended")

    @endpoint
    def note(self, text: str) -> list[str]:
        self.done.append(text)
        return self.done


class Waiting(Actor):
    def __init__(self, port: Port[str]) -> None:
        self.port = port

    @endpoint
    async def wait(self) -> None:
        try:
            self.port.send("runs")
            await asyncio.Event().wait()
        finally:
            self.port.send("ended")

    @concurrent_endpoint
    async def wait_beside(self) -> None:
        try:
            self.port.send("runs")
            await asyncio.Event().wait()
        finally:
            self.port.send("ended")

    @endpoint
    def rank_waits(self, number: int) -> int:
        return number


@pytest.mark.parametrize(
    ("cls", "name"), [(Busy, "spin"), (Waiting, "wait"), (Waiting, "wait_beside")]
)
def test_a_call_that_is_late_is_ended_where_it_runs(procs, cls, name):
    port, receiver = Channel.open()
    actor = spawn(cls, port, procs=procs)
    future = getattr(actor, name).options(timeout=0.2).call_one()
    assert receiver.recv().get(timeout=20) == "runs"
    with pytest.raises(TimeoutError, match=rf"{name} on .*within 0\.2 s from rank 0; it was canc"):
        future.get()
    assert receiver.recv().get(timeout=20) == "ended"


def test_a_late_call_that_sleeps_in_the_main_thread_of_a_proc_is_woken(own_child):
    port, receiver = Channel.open()
    actor = spawn(Busy, port, procs=[own_child])
    future = actor.sleep.options(timeout=0.2).call_one()
    assert receiver.recv().get(timeout=20) == "runs"
    with pytest.raises(TimeoutError):
        future.get()
    assert receiver.recv().get(timeout=20) == "ended"
    assert actor.note.call_one("lives").get(timeout=20) == ["lives"]


def test_a_late_call_that_nobody_waits_for_is_ended_too(procs):
    port, receiver = Channel.open()
    actor = spawn(Waiting, port, procs=procs)
    actor.created.get(timeout=20)
    actor.wait.options(timeout=1.0).call_one()  # long enough for it to begin
    gc.collect()
    assert [receiver.recv().get(timeout=20) for _ in range(2)] == ["runs", "ended"]


def test_a_call_that_still_waits_in_the_queue_is_dropped(procs):
    port, receiver = Channel.open()
    actor = spawn(Busy, port, procs=procs)
    blocked = actor.spin.options(timeout=0.3).call_one()
    assert receiver.recv().get(timeout=20) == "runs"
    with pytest.raises(TimeoutError):
        actor.note.options(timeout=0.05).call_one("dropped").get()
    with pytest.raises(TimeoutError):
        blocked.get()
    assert actor.note.call_one("kept").get(timeout=20) == ["kept"]


def test_an_awaited_call_is_late_as_well(child):
    port, receiver = Channel.open()
    actor = spawn(Waiting, port, procs=[child])

    async def main() -> None:
        with pytest.raises(TimeoutError, match=r"within 0\.1 s"):
            await actor.wait.options(timeout=0.1).call_one()

    asyncio.run(main())
    assert [receiver.recv().get(timeout=20) for _ in range(2)] == ["runs", "ended"]


def test_a_call_that_is_in_time_is_not_disturbed(procs):
    actor = spawn(Waiting, None, procs=procs)
    limited = actor.rank_waits.options(timeout=30)
    assert [limited.call_one(number).get() for number in range(50)] == list(range(50))


class Half(Actor):
    def __init__(self, bad: int, how: str) -> None:
        self.bad = current_rank().rank == bad
        self.how = how

    @endpoint
    async def run(self) -> str:
        if self.bad and self.how == "raise":
            raise ValueError("half")
        if self.bad:
            await asyncio.Event().wait()
        return "good"


@pytest.mark.parametrize(("how", "kind"), [("raise", "ActorError"), ("wait", "TimeoutError")])
def test_good_results_are_kept_when_errors_are_collected(child, how, kind):
    mesh = spawn(Half, 1, how, procs=[child, process().id, child])
    collected = mesh.run.options(timeout=1.0, on_error="collect").call()
    values, errors = collected.get(timeout=20)
    assert [values[0], values[2]] == ["good", "good"]
    assert [(rank, type(error).__name__) for rank, error in errors.items()] == [(1, kind)]


def test_the_first_error_of_a_rank_is_the_calls_though_others_still_run(child):
    mesh = spawn(Half, 1, "raise", procs=[child, process().id, child])
    waiting = spawn(Half, 0, "wait", procs=[child])
    with pytest.raises(Exception, match="half"):
        mesh.run.call().get(timeout=20)
    with pytest.raises(TimeoutError):
        waiting.run.call().get(timeout=0.01)
    with pytest.raises(ValueError, match='"raise" or "collect"'):
        mesh.run.options(on_error="hide")
