"""Snapshots: actors that are made again start from the state that they gave."""

from __future__ import annotations

import os
import signal

import pytest

from monarch.actor import Actor, ActorCrashError, SupervisionError, endpoint
from monarch.supervision import Restart, snapshot, snapshots
from tests.monarch.mesh.actors import Counter
from tests.promises.test_owners import until

T = 60


class Kept(Actor):
    def __init__(self, start=0):
        self.count = start
        self.blob = b""

    @endpoint
    def add(self, blob=b""):
        self.count += 1
        self.blob = blob
        return self.count

    @endpoint
    def read(self):
        return self.count, len(self.blob)

    @endpoint
    def pid(self):
        return os.getpid()

    @endpoint
    def fail(self):
        raise ValueError("beep")

    def __snapshot__(self):
        return {"count": self.count, "blob": self.blob}

    def __restore__(self, state):
        self.count, self.blob = state["count"], state["blob"]


class AsyncKept(Kept):
    @endpoint
    async def pid(self):
        return os.getpid()


class Picky(Kept):
    def __restore__(self, state):
        raise ValueError(f"not {state['count']}")


def kill(actors, rank):
    part = actors.slice(n=rank)
    pid = part.pid.call_one().get(T)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ActorCrashError):
        until(lambda: not part.pid.call_one().get(T))


@pytest.mark.promise("S09")
@pytest.mark.parametrize("kind", [Kept, AsyncKept])
def test_a_rank_starts_from_its_last_snapshot_and_one_without_from_its_constructor(
    spawn, failures, kind
):
    procs = spawn(n=3)
    actors = procs.spawn("kept", kind, 10)
    large = bytes(1 << 20)
    actors.add.call(large).get(T)
    snapshot(actors.slice(n=1)).get(T)
    assert list(snapshots(actors)) == [1]
    actors.add.call().get(T)
    kill(actors, 1)
    kill(actors, 2)
    procs.respawn().get(T)
    assert list(actors.read.call().get(T).values()) == [(12, 0), (11, len(large)), (10, 0)]
    failures.wait(2)


@pytest.mark.promise("S09")
def test_an_actor_that_a_policy_makes_again_starts_from_its_snapshot(spawn, failures):
    actors = spawn(n=2).spawn("kept", Kept, restart=Restart())
    actors.add.call().get(T)
    snapshot(actors).get(T)
    actors.add.call().get(T)
    actors.slice(n=0).fail.broadcast()

    def read():
        try:
            return list(actors.read.call().get(T).values())
        except SupervisionError:
            return None

    until(lambda: read() == [(1, 0), (2, 0)])
    assert failures == []


def test_a_snapshot_that_cannot_be_restored_is_a_failure_of_the_constructor(spawn, failures):
    procs = spawn(n=1)
    actors = procs.spawn("picky", Picky)
    actors.add.call().get(T)
    snapshot(actors).get(T)
    kill(actors, 0)
    with pytest.raises(SupervisionError, match="ValueError: not 1"):
        procs.respawn([0]).get(T)
    failures.wait(2)
    assert [failure.kind for failure in failures] == ["signal", "init"]


def test_actors_without_the_methods_or_of_others_give_none(spawn):
    counters = spawn(n=1).spawn("counters", Counter)
    with pytest.raises(TypeError, match="Counter has no __snapshot__ and no __restore__"):
        snapshot(counters)
    with pytest.raises(TypeError, match="of an actor mesh"):
        snapshot(3)
    kept = spawn(n=1).spawn("kept", Kept)
    kept.stop().get(T)
    with pytest.raises(RuntimeError, match="or were stopped"):
        snapshots(kept)
