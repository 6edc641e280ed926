"""Lost ranks replaced in place: the same handles answer again."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import time
from pathlib import Path

import pytest

from monarch.actor import (
    Actor,
    ActorCrashError,
    Channel,
    Port,
    SupervisionError,
    context,
    endpoint,
)
from tests.monarch.mesh.actors import Counter, Keeper, Where

T = 60


class Old(Actor):
    """Has a handle as it was when it was pickled."""

    def __init__(self, pickled: bytes) -> None:
        self.where = pickle.loads(pickled)  # noqa: S301 - our own

    @endpoint
    async def relay(self) -> list[int]:
        return [value for _point, value in (await self.where.pid.call()).items()]


def pids_of(where):
    return list(where.pid.call().get(timeout=T).values())


def test_a_rank_that_is_lost_before_it_said_that_it_is_there(spawn, failures):
    procs = spawn(gpus=2)
    lost = pids_of(procs.spawn("where", Where))[1]
    os.kill(lost, signal.SIGSTOP)
    before = procs.initialized
    os.kill(lost, signal.SIGKILL)
    for there in (before, procs.initialized):
        with pytest.raises(ActorCrashError, match="killed by signal SIGKILL") as caught:
            there.get(timeout=T)
        assert caught.value.ranks == (1,)
        assert caught.value.failure.pid == lost
    failures.wait(1)


def test_a_killed_rank_is_replaced_and_the_others_go_on(spawn, failures):
    procs = spawn(n=3)
    where = procs.spawn("where", Where)
    counters = procs.spawn("counters", Counter, 100)
    counters.increment.call().get(timeout=T)
    before = pids_of(where)
    os.kill(before[1], signal.SIGKILL)
    with pytest.raises(ActorCrashError):
        where.slice(n=1).pid.call_one().get(timeout=T)
    failures.wait(1)
    assert procs.respawn([1]).get(timeout=T) is None
    after = pids_of(where)
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1] != before[1]
    assert list(counters.increment.call().get(timeout=T).values()) == [102, 101, 102]
    assert where.slice(n=1).spawn_point.call_one().get(timeout=T) == (1, {"n": 1})


def test_all_lost_ranks_are_replaced_without_naming_them(spawn, failures):
    procs = spawn(n=3)
    where = procs.spawn("where", Where)
    before = pids_of(where)
    for rank in (0, 2):
        os.kill(before[rank], signal.SIGKILL)
        with pytest.raises(ActorCrashError):
            where.slice(n=rank).pid.call_one().get(timeout=T)
    failures.wait(2)
    procs.respawn().get(timeout=T)
    after = pids_of(where)
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True, False]
    assert procs.respawn().get(timeout=T) is None
    assert pids_of(where) == after


def test_a_handle_from_before_a_respawn_is_up_to_date_wherever_it_is_first_used(spawn, failures):
    procs, others = spawn(n=2), spawn(m=2)
    where = procs.spawn("where", Where)
    pids = pids_of(where)
    old = pickle.dumps(where)
    os.kill(pids[1], signal.SIGKILL)
    failures.wait(1)
    replacing = procs.respawn(1)
    assert repr(replacing).startswith("<Future of proc mesh 'procs': rank 1 to be replaced: ")
    replacing.get(timeout=T)
    relays = others.spawn("relays", Old, old)
    told = relays.relay.call().get(timeout=T)
    assert [sorted(values) for values in told.values()] == [sorted(pids_of(where))] * 2


def test_a_call_names_all_ranks_that_are_lost(spawn, failures):
    procs = spawn(n=4)
    where = procs.spawn("where", Where)
    pids = pids_of(where)
    for rank in (1, 3):
        os.kill(pids[rank], signal.SIGKILL)
    failures.wait(2)
    with pytest.raises(ActorCrashError, match="ranks 1, 3 cannot answer") as caught:
        where.pid.call().get(timeout=T)
    assert caught.value.ranks == (1, 3)
    assert caught.value.delivered is False
    with pytest.raises(ActorCrashError) as caught:
        where.slice(n=slice(2, 4)).pid.call().get(timeout=T)
    assert caught.value.ranks == (3,)


def test_a_living_rank_is_replaced_when_it_is_named(spawn, failures):
    procs = spawn(n=2)
    where = procs.spawn("where", Where)
    before = pids_of(where)
    procs.respawn(0).get(timeout=T)
    after = pids_of(where)
    assert after[0] != before[0]
    assert after[1] == before[1]
    assert failures == []


class Sleeper(Actor):
    """Tells that it begins, and takes long."""

    @endpoint
    def sleep(self, begun: Port[int]) -> None:
        begun.send(os.getpid())
        time.sleep(3600)


def test_a_call_under_way_to_a_living_rank_that_is_replaced_or_stopped_raises_without_a_failure(
    spawn, failures
):
    procs = spawn(n=2)
    sleepers = procs.spawn("sleepers", Sleeper)
    for end in (lambda: procs.respawn([1]), procs.stop):
        begun, receiver = Channel.open()
        call = sleepers.slice(n=1).sleep.call_one(begun)
        receiver.recv().get(timeout=T)
        end().get(timeout=T)
        with pytest.raises(SupervisionError, match="rank 1 of mesh 'procs' was stopped") as caught:
            call.get(timeout=T)
        assert not isinstance(caught.value, ActorCrashError)
        assert (caught.value.failure, caught.value.ranks) == (None, (1,))
    assert failures == []


def test_actors_of_a_slice_come_back_in_their_places(spawn, failures):
    procs = spawn(n=4)
    part = procs.slice(n=slice(1, 4, 2)).spawn("part", Where)
    pids_of(part)
    procs.respawn([3, 0]).get(timeout=T)
    assert list(part.spawn_point.call().get(timeout=T).values()) == [(0, {"n": 0}), (1, {"n": 1})]


def test_actors_that_were_stopped_do_not_come_back(spawn, failures):
    procs = spawn(n=2)
    where = procs.spawn("where", Where)
    where.slice(n=1).stop("enough").get(timeout=T)
    procs.respawn([0, 1]).get(timeout=T)
    assert where.slice(n=0).spawn_point.call_one().get(timeout=T) == (0, {"n": 0})
    other = procs.spawn("other", Where)
    other.stop().get(timeout=T)
    procs.respawn([1]).get(timeout=T)
    assert list(procs.spawn("more", Where).spawn_point.call().get(timeout=T).values()) == [
        (0, {"n": 0}),
        (1, {"n": 1}),
    ]


def test_a_handle_that_was_sent_away_reaches_the_replaced_rank(spawn, failures):
    procs = spawn(n=2)
    where = procs.spawn("where", Where)
    other = spawn(n=1).spawn("other", Keeper).slice(n=0)
    other.keep.call_one(where).get(timeout=T)
    before = other.pids.call_one().get(timeout=T)
    procs.respawn([1]).get(timeout=T)
    after = other.pids.call_one().get(timeout=T)
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert after == pids_of(where)


def test_only_ranks_that_exist_are_replaced(spawn):
    procs = spawn(n=2)
    with pytest.raises(IndexError, match=r"respawn\(\[2\]\): index 2 is out of range for 2"):
        procs.respawn([2])
    for ranks in ("a", [0.5], 1.5):
        with pytest.raises(TypeError, match=r"respawn\(.*\): a rank is an integer"):
            procs.respawn(ranks)


def test_a_respawn_whose_process_is_replaced_in_turn_ends_too(spawn):
    procs = spawn(n=2)
    workers = procs.spawn("workers", Where)
    asked = [procs.respawn([0]) for _ in range(4)]
    for one in asked:
        with contextlib.suppress(SupervisionError):
            assert one.get(timeout=T) is None
    assert asked[-1].exception() is None
    assert len(workers.pid.call().get(timeout=T)) == 2


class Deadly(Actor):
    """Ends its process in each constructor but the first of a place."""

    def __init__(self, folder):
        mark = Path(folder, str(context().actor_instance.rank.rank))
        if mark.exists():
            os._exit(3)
        mark.touch()


def test_a_process_that_ends_while_its_actors_are_made_again_is_the_error_of_the_respawn(
    cluster, tmp_path
):
    mesh = cluster(1)
    mesh.spawn("deadly", Deadly, str(tmp_path)).initialized.get(timeout=T)
    with pytest.raises(SupervisionError, match="ended with exit code 3"):
        mesh.procs.respawn([0]).get(timeout=T)


class Fragile(Actor):
    """Can be made once in each place."""

    def __init__(self, folder):
        mark = Path(folder, str(context().actor_instance.rank.rank))
        if mark.exists():
            raise ValueError("made before")
        mark.touch()

    @endpoint
    def pid(self):
        return os.getpid()


def test_an_actor_that_cannot_be_made_again_is_the_error_of_the_respawn(cluster, tmp_path):
    mesh = cluster(3)
    procs = mesh.procs
    where, fragile = procs.spawn("where", Where), procs.spawn("fragile", Fragile, str(tmp_path))
    pids_of(where)
    assert fragile.initialized.get(timeout=T)
    with pytest.raises(SupervisionError, match=r"rank 2 .*made before") as raised:
        procs.respawn([2]).get(timeout=T)
    assert raised.value.ranks == (2,)
    assert len(pids_of(where)) == 3
    with pytest.raises(SupervisionError, match="made before"):
        fragile.initialized.get(timeout=T)
    assert mesh.failures.wait().ranks == (2,)
