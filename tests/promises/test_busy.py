"""Busy is not dead, stopped is; endpoints that wait for each other are named."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from monarch._proc.local import spawner
from monarch.actor import (
    Actor,
    ActorCrashError,
    ActorError,
    DeadlockError,
    concurrent_endpoint,
    current_rank,
    endpoint,
)
from monarch.supervision import status
from tests.promises.actors import Mortal
from tests.watching import until

T = 60


@pytest.mark.promise("S07")
def test_a_process_whose_interpreter_is_held_is_busy_and_not_dead(cluster):
    mesh = cluster(2)
    trainers = mesh.spawn("trainers", Mortal)
    trainers.pid.call().get(T)
    # Longer than all heartbeats that may be missed; the engine's are two seconds.
    answer = trainers.slice(procs=1).hold_the_interpreter.call_one(3.5)
    busy = until(lambda: [one for one in status(mesh.procs) if one.seconds > 3])
    assert [(one.rank, one.state, one.running) for one in busy] == [
        (1, "busy", ("trainers.hold_the_interpreter",))
    ]
    assert "rank 1 is busy for 3." in str(busy[0])
    assert status(mesh.procs)[0].state == "idle"
    assert answer.get(T) == "done"
    assert mesh.failures == []
    assert trainers.pid.call().get(T)


def test_what_processes_do_is_told_by_rank_of_the_mesh_that_is_asked_about(cluster):
    mesh = cluster(3)
    assert [one.rank for one in status(mesh.procs.slice(procs=slice(1, 3)))] == [0, 1]
    pid = mesh.kill(1)
    gone = mesh.failures.wait(1, T)
    assert gone.pid == pid
    found = status(mesh.procs)
    assert [one.state for one in found] == ["idle", "gone", "idle"]
    assert found[1].pid is None
    assert found[2].pid == mesh.pid(2)


@pytest.mark.promise("S07")
@pytest.mark.slow
def test_a_process_that_was_stopped_by_a_signal_is_found_and_replaced(cluster):
    mesh = cluster(2)
    trainers = mesh.spawn("trainers", Mortal)
    pids = list(trainers.pid.call().get(T).values())
    os.kill(pids[1], signal.SIGSTOP)
    until(lambda: status(mesh.procs)[1].state == "stopped")
    with pytest.raises(ActorCrashError, match="rank 1 of mesh 'trainers' hung"):
        trainers.pid.call().get(T)
    failure = mesh.failures.wait(1, T)
    assert (failure.kind, failure.ranks, failure.pid) == ("hung", (1,), pids[1])
    mesh.procs.respawn().get(T)
    assert trainers.pid.call().get(T)


@pytest.mark.promise("S07")
@pytest.mark.slow
def test_processes_that_nobody_starts_since_the_zygote_is_stopped_are_told_and_others_live(cluster):
    mesh = cluster(1)
    trainers = mesh.spawn("trainers", Mortal)
    trainers.pid.call().get(T)
    zygote = spawner().zygote
    os.kill(zygote, signal.SIGSTOP)
    try:
        late = cluster(2)
        told = {late.failures.wait(count, T).ranks for count in (1, 2)}
        with pytest.raises(
            ActorCrashError, match=rf"zygote \(pid {zygote}\) is stopped; kill -CONT"
        ):
            late.spawn("late", Mortal).pid.call().get(T)
    finally:
        os.kill(zygote, signal.SIGCONT)
    assert told == {(0,), (1,)}
    assert {failure.kind for failure in late.failures} == {"start"}
    assert trainers.pid.call().get(T)
    late.procs.respawn().get(T)
    assert len(set(late.spawn("again", Mortal).pid.call().get(T).values())) == 2
    assert len(late.failures) == 2


@pytest.mark.promise("S06")
@pytest.mark.promise("S07")
@pytest.mark.slow
def test_a_process_that_goes_on_in_time_is_not_declared_dead(cluster):
    mesh = cluster(1)
    trainers = mesh.spawn("trainers", Mortal)
    (pid,) = trainers.pid.call().get(T).values()
    os.kill(pid, signal.SIGSTOP)
    until(lambda: status(mesh.procs)[0].state == "stopped")
    os.kill(pid, signal.SIGCONT)
    assert list(trainers.pid.call().get(T).values()) == [pid]
    assert mesh.failures == []


class Ring(Actor):
    """Calls the next one and waits for its answer."""

    def __init__(self):
        self.next = None

    @endpoint
    def link(self, other):
        self.next = other

    @endpoint
    def value(self):
        return 1

    @endpoint
    def around(self, steps):
        if steps == 0:
            return 0
        return 1 + self.next.around.call_one(steps - 1).get()

    @endpoint
    def peek(self):
        return self.next.value.call_one().get()


class AsyncRing(Actor):
    def __init__(self):
        self.next = None

    @endpoint
    async def link(self, other):
        self.next = other

    @endpoint
    async def around(self, steps):
        if steps == 0:
            return 0
        return 1 + await self.next.around.call_one(steps - 1)


class OpenRing(AsyncRing):
    @concurrent_endpoint
    async def around(self, steps):
        if steps == 0:
            return 0
        return 1 + await self.next.around.call_one(steps - 1)


async def awaited(call):
    return await call


class Gatherer(AsyncRing):
    """Waits for several answers at once, in one of asyncio's ways."""

    @endpoint
    async def value(self):
        return 1

    @endpoint
    async def slow(self):
        await asyncio.sleep(2.5)
        return 1

    @endpoint
    async def ask_back(self, other):
        return await other.value.call_one()

    @endpoint
    async def both(self, way, own, others):
        first, *rest = others
        calls = [first.slow.call_one(), *(other.ask_back.call_one(own) for other in rest)]
        if way == "gather":
            return await asyncio.gather(*calls)
        if way == "wait":
            tasks = [asyncio.ensure_future(call) for call in calls]
            done, _ = await asyncio.wait(tasks)
            return [task.result() for task in done]
        if way == "first":
            tasks = [asyncio.ensure_future(call) for call in calls]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return [task.result() for task in done]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(awaited(call)) for call in calls]
        return [task.result() for task in tasks]


def ring(cluster, kind, count):
    mesh = cluster(count)
    actors = mesh.spawn("ring", kind)
    for rank in range(count):
        actors.slice(procs=rank).link.call_one(actors.slice(procs=(rank + 1) % count)).get(T)
    return actors


@pytest.mark.parametrize("kind", [Ring, AsyncRing])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_endpoints_that_wait_for_each_other_in_a_circle_are_named(cluster, kind, count):
    actors = ring(cluster, kind, count)
    name = kind.__qualname__
    with pytest.raises(ActorError) as raised:
        actors.slice(procs=0).around.call_one(count + 1).get(T)
    text = str(raised.value)
    circle = " → ".join([f"{name}.around"] * (count + 1))
    assert f"deadlock: {circle}. {name}.around waits for {name}.around" in text
    cause = raised.value
    while isinstance(cause, ActorError):
        cause = cause.exception
    assert isinstance(cause, DeadlockError)
    assert cause.cycle == (f"{name}.around",) * count
    # The actors are free again.
    assert actors.slice(procs=0).around.call_one(0).get(T) == 0


@pytest.mark.parametrize("way", ["gather", "wait", "group"])
def test_circles_through_some_of_several_calls_that_are_awaited_at_once_are_named(cluster, way):
    actors = cluster(4).spawn("gatherers", Gatherer)
    own, *others = (actors.slice(procs=rank) for rank in range(4))
    with pytest.raises(ActorError) as raised:
        own.both.call_one(way, own, others).get(T)
    circle = "Gatherer.ask_back → Gatherer.both → Gatherer.ask_back"
    other = "Gatherer.both → Gatherer.ask_back → Gatherer.both"
    assert f"deadlock: {circle}. " in str(raised.value) or f"deadlock: {other}. " in str(
        raised.value
    )
    assert own.value.call_one().get(T) == 1


def test_who_awaits_the_first_of_several_calls_is_no_deadlock(cluster):
    actors = cluster(3).spawn("gatherers", Gatherer)
    own, *others = (actors.slice(procs=rank) for rank in range(3))
    assert own.both.call_one("first", own, others).get(T) == [1]


def test_a_ring_that_is_not_closed_is_let_alone(cluster):
    actors = ring(cluster, Ring, 3)
    assert actors.slice(procs=0).around.call_one(2).get(T) == 2


def test_concurrent_endpoints_go_round_as_often_as_they_like(cluster):
    actors = ring(cluster, OpenRing, 2)
    assert actors.slice(procs=0).around.call_one(20).get(T) == 20


def test_a_slow_answer_is_waited_for_however_long(cluster):
    workers = cluster(1).spawn("workers", Mortal)
    asker = cluster(1).spawn("asker", Asker)
    assert asker.ask.call_one(workers.slice(procs=0)).get(T) == "done"


class Asker(Actor):
    @endpoint
    def ask(self, worker):
        return worker.hold_the_interpreter.call_one(3.0).get()


class Boss(Actor):
    """Waits for its workers, one of which asks it something meanwhile."""

    @endpoint
    def first(self, workers):
        return next(workers.ask_back.stream(self.own())).get()

    @endpoint
    def all(self, workers):
        return list(workers.ask_back.call(self.own()).get().values())

    @endpoint
    def link(self, own):
        self.own = lambda: own

    @endpoint
    def value(self):
        return "asked"


class AskingBack(Actor):
    """Rank 0 asks the boss back; the others take their time."""

    @endpoint
    def ask_back(self, boss):
        if current_rank().rank == 0:
            return boss.value.call_one().get()
        time.sleep(4.0)
        return "slow"


def bossed(cluster):
    boss = cluster(1).spawn("boss", Boss).slice(procs=0)
    boss.link.call_one(boss).get(T)
    return boss, cluster(2).spawn("workers", AskingBack)


def test_who_waits_for_one_of_several_answers_is_no_deadlock_while_another_may_come(cluster):
    boss, workers = bossed(cluster)
    assert boss.first.call_one(workers).get(T) == "slow"
    assert boss.value.call_one().get(T) == "asked"


def test_a_circle_through_one_of_several_answers_that_are_all_needed_is_named(cluster):
    boss, workers = bossed(cluster)
    with pytest.raises(ActorError) as raised:
        boss.all.call_one(workers).get(T)
    assert "deadlock: " in str(raised.value)
    assert "Boss.all" in str(raised.value)
