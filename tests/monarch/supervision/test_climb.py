"""The climb against a model: a tree of owners over several processes, deaths in any order."""

from __future__ import annotations

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._failure import Cause, MeshFailure
from monarch._supervision.climb import ROOT, Ask, Climb, Tell, together

CLIENT, CHILD = 100, 200


def death(name, **fields):
    return MeshFailure("exit", "w", (0,), exit_code=1, death=name, **fields)


def raised(rank, text="beep", **fields):
    causes = (Cause("ValueError", text),)
    return MeshFailure("init", "w", (rank,), causes=causes, death=f"d{rank}", **fields)


def test_a_failure_waits_for_its_owner_and_is_taken_once():
    climb = Climb(CLIENT)
    (ask,) = climb.arrived(ROOT, death("a"))
    assert isinstance(ask, Ask)
    assert ask.actor == ROOT
    assert climb.arrived(ROOT, death("b")) == []
    assert [f.death for f in climb.take(ROOT)] == ["a", "b"]
    assert climb.take(ROOT) == []


@pytest.mark.promise("S01")
def test_the_same_death_heard_twice_is_asked_about_once():
    climb = Climb(CLIENT)
    climb.arrived(ROOT, death("a"))
    climb.take(ROOT)
    assert climb.arrived(ROOT, death("a")) == []
    assert climb.take(ROOT) == []


def test_an_owner_is_asked_about_each_rank_that_one_fault_ended():
    climb = Climb(CLIENT)
    climb.arrived(ROOT, raised(1))
    climb.arrived(ROOT, raised(0))
    assert [failure.ranks for failure in climb.take(ROOT)] == [(1,), (0,)]


@pytest.mark.report("81")
def test_a_report_tells_of_one_fault_in_several_ranks_once():
    failures = [
        raised(1, pid=11, host="h"),
        raised(2, "other", pid=13),
        raised(0, pid=12, host="h"),
    ]
    one, other = together(failures)
    assert (one.ranks, one.pid, one.host) == ((0, 1), None, "h")
    assert (other.ranks, other.pid) == ((2,), 13)


def test_a_report_tells_of_deaths_without_a_common_cause_apart():
    assert len(together([death("a"), death("b")])) == 2


def test_what_an_owner_passes_on_goes_to_its_owner_with_its_name():
    climb = Climb(CHILD, (CLIENT, ROOT))
    climb.adopt(7, "Manager 'm'", (CLIENT, ROOT))
    climb.adopt(8, "Helper 'h'", (CHILD, 7))
    climb.arrived(8, death("a"))
    (failure,) = climb.take(8)
    (ask,) = climb.passed(8, failure, "ValueError: no")
    assert ask.actor == 7
    (failure,) = climb.take(7)
    (tell,) = climb.passed(7, failure)
    assert isinstance(tell, Tell)
    assert (tell.proc, tell.actor) == (CLIENT, ROOT)
    assert tell.failure.passed_by == ("Helper 'h' (ValueError: no)", "Manager 'm'")


def test_at_the_top_the_climb_ends():
    climb = Climb(CLIENT)
    climb.arrived(ROOT, death("a"))
    (failure,) = climb.take(ROOT)
    assert climb.passed(ROOT, failure) == []


def test_what_waits_for_an_owner_that_ends_climbs_on():
    climb = Climb(CHILD, (CLIENT, ROOT))
    climb.adopt(7, "m", (CLIENT, 3))
    climb.arrived(7, death("a"))
    (tell,) = climb.leave(7)
    assert (tell.proc, tell.actor, tell.failure.death) == (CLIENT, 3, "a")


def test_a_failure_for_an_owner_that_has_ended_stands_for_its_process():
    climb = Climb(CHILD, (CLIENT, ROOT))
    climb.adopt(7, "m", (CLIENT, 3))
    climb.leave(7)
    (ask,) = climb.arrived(7, death("a"))
    assert ask.actor == ROOT
    (failure,) = climb.take(ROOT)
    (tell,) = climb.passed(ROOT, failure)
    assert (tell.proc, tell.actor) == (CLIENT, ROOT)


def test_owners_are_looked_up_when_something_arrives_for_them():
    living = {7: ("Manager 'm'", (CLIENT, 3))}
    climb = Climb(CHILD, (CLIENT, ROOT), find=living.get)
    (ask,) = climb.arrived(7, death("a"))
    assert ask.actor == 7
    (ask,) = climb.arrived(8, death("a"))
    assert ask.actor == ROOT
    (tell,) = climb.passed(7, climb.take(7)[0])
    assert (tell.proc, tell.actor, tell.failure.passed_by) == (CLIENT, 3, ("Manager 'm'",))


@st.composite
def trees(draw):
    """Owners: actor i > 0 lives in some process and is owned by an earlier one; 0 is the client."""
    size = draw(st.integers(1, 8))
    homes = [0] + [draw(st.integers(0, 3)) for _ in range(size - 1)]
    owners = [None] + [draw(st.integers(0, i - 1)) for i in range(1, size)]
    handles = [draw(st.booleans()) for _ in range(size)]
    deaths = draw(st.lists(st.integers(0, size - 1), max_size=6))
    order = draw(st.randoms(use_true_random=False))
    return homes, owners, handles, deaths, order


@pytest.mark.promise("S01", "S05")
@given(trees())
def test_each_owner_up_to_the_one_that_handles_is_asked_once_and_no_other(tree):
    homes, owners, handles, deaths, order = tree
    # Actors of the process of the client are numbered as its root, 0, and others from 1 on.
    climbs = {home: Climb(home, None if home == 0 else (0, ROOT)) for home in range(4)}
    for actor in range(1, len(homes)):
        climbs[homes[actor]].adopt(actor, str(actor), (homes[owners[actor]], owners[actor]))
    asked = collections.Counter()
    for number, owner in enumerate(deaths):
        work = [Tell(homes[owner], owner, death(str(number)))]
        if order.random() < 0.5:
            work.append(work[0])  # heard twice
        at = homes[owner]
        while work:
            effect = work.pop(order.randrange(len(work)))
            if isinstance(effect, Tell):
                at = effect.proc
                asks = climbs[at].arrived(effect.actor, effect.failure)
                work += [(at, ask) for ask in asks]
                continue
            at, ask = effect
            for failure in climbs[at].take(ask.actor):
                asked[failure.death, ask.actor] += 1
                if not handles[ask.actor]:
                    for next_effect in climbs[at].passed(ask.actor, failure):
                        tell = isinstance(next_effect, Tell)
                        work.append(next_effect if tell else (at, next_effect))
    expected = collections.Counter()
    for number, owner in enumerate(deaths):
        at = owner
        while at is not None:
            expected[str(number), at] += 1
            at = None if handles[at] else owners[at]
    assert asked == expected
