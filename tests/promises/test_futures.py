"""Every future ends: with a value, an error or a deadline."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from monarch.actor import Actor, ActorCrashError, Channel, SupervisionError, endpoint
from tests.promises.actors import Mortal

T = 60
SOON = 20  # detection takes milliseconds; a shared machine may take longer


class Collector(Actor):
    @endpoint
    def gather(self, mesh):
        return list(mesh.pid.call().get().values())

    @endpoint
    def hold(self, mesh):
        return mesh.hold_the_interpreter.call(600).get()


@pytest.mark.promise("R09")
def test_all_ways_to_wait_for_a_process_end_with_its_death(cluster):
    mesh = cluster(2)
    trainers = mesh.spawn("trainers", Mortal)
    trainers.pid.call().get(T)
    part = trainers.slice(procs=1)
    busy = part.hold_the_interpreter.call_one(600)
    waiting = [
        trainers.pid.call(),
        part.pid.call_one(),
        part.pid.choose(),
        *part.pid.stream(),
        part.initialized,
        part.stop(),
    ]
    began = time.monotonic()
    mesh.kill(1)
    with pytest.raises(ActorCrashError):
        busy.get(SOON)
    for future in waiting:
        try:
            future.get(SOON)
        except SupervisionError:
            continue
    assert time.monotonic() - began < SOON


@pytest.mark.promise("R09")
def test_an_actor_that_waits_for_a_lost_process_of_another_owner_is_told(cluster):
    mesh, other = cluster(2), cluster(1)
    trainers = mesh.spawn("trainers", Mortal)
    collector = other.spawn("collector", Collector).slice(procs=0)
    assert len(collector.gather.call_one(trainers).get(T)) == 2
    waits = collector.hold.call_one(trainers.slice(procs=1))
    mesh.kill(1)
    with pytest.raises(Exception, match="rank 1 of mesh 'trainers' was killed by signal SIGKILL"):
        waits.get(SOON)
    with pytest.raises(Exception, match="rank 1 of mesh 'trainers' was killed by signal SIGKILL"):
        collector.gather.call_one(trainers).get(SOON)


@pytest.mark.promise("R09")
def test_a_wait_in_an_event_loop_ends_with_the_death(cluster):
    mesh = cluster(1)
    trainers = mesh.spawn("trainers", Mortal)
    trainers.pid.call().get(T)
    pid = mesh.pid(0)

    async def main():
        waits = asyncio.ensure_future(trainers.hold_the_interpreter.call(600).as_asyncio())
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ActorCrashError):
            await asyncio.wait_for(waits, SOON)

    asyncio.run(main())


@pytest.mark.promise("R09")
def test_a_deadline_ends_what_nothing_else_ends(cluster):
    _port, receiver = Channel.open()
    with pytest.raises(TimeoutError):
        receiver.recv().get(timeout=0.05)
    trainers = cluster(1).spawn("trainers", Mortal)
    with pytest.raises(TimeoutError, match=r"rank 0"):
        trainers.hold_the_interpreter.options(timeout=0.2).call(1).get(T)


@pytest.mark.promise("R09")
@pytest.mark.report("85")
def test_a_handle_of_a_stopped_mesh_fails_at_once_and_its_name_is_free(cluster):
    mesh = cluster(2)
    old = mesh.spawn("trainers", Mortal)
    old.pid.call().get(T)
    sent = cluster(1).spawn("collector", Collector).slice(procs=0)
    sent.gather.call_one(old).get(T)
    old.stop().get(T)
    new = mesh.spawn("trainers", Mortal)
    assert len(new.pid.call().get(T)) == 2
    with pytest.raises(SupervisionError, match="stopped"):
        old.pid.call().get(SOON)
    with pytest.raises(Exception, match="stopped"):
        sent.gather.call_one(old).get(SOON)
    mesh.procs.stop().get(T)
    with pytest.raises(SupervisionError, match="stopped"):
        new.pid.call().get(SOON)
    assert mesh.failures == []
