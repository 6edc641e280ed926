"""Lost ranks replaced in place: the same handles answer again."""

from __future__ import annotations

import pytest

from tests.monarch.mesh.actors import Keeper, Where

T = 60


def pids_of(where):
    return list(where.pid.call().get(timeout=T).values())


def test_a_living_rank_is_replaced_when_it_is_named(spawn, failures):
    procs = spawn(n=2)
    where = procs.spawn("where", Where)
    before = pids_of(where)
    procs.respawn(0).get(timeout=T)
    after = pids_of(where)
    assert after[0] != before[0]
    assert after[1] == before[1]
    assert failures == []


def test_actors_of_a_slice_come_back_in_their_places(spawn, failures):
    procs = spawn(n=4)
    part = procs.slice(n=slice(1, 4, 2)).spawn("part", Where)
    pids_of(part)
    procs.respawn([3, 0]).get(timeout=T)
    assert list(part.spawn_point.call().get(timeout=T).values()) == [(0, {"n": 0}), (1, {"n": 1})]


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
