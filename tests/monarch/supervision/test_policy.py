"""Restart policies: strategies, kinds and intensity, and a model that is written otherwise."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._restart import KINDS, STRATEGIES, Decision, Restart
from monarch._supervision.policy import GiveUp, Group, Plan

ENDED_BADLY, ENDED_WELL = False, True


def group(children=4, **fields):
    return Group(Restart(**fields), range(children))


def dies(of, child, now=0.0, well=ENDED_BADLY):
    return of.ended([(child, well)], now)


@pytest.mark.promise("S02")
@pytest.mark.parametrize(
    ("strategy", "stop", "start"),
    [
        ("one-for-one", (), (1,)),
        ("one-for-all", (3, 2, 0), (0, 1, 2, 3)),
        ("rest-for-one", (3, 2), (1, 2, 3)),
    ],
)
def test_a_strategy_says_what_stops_backwards_and_starts_forwards(strategy, stop, start):
    assert dies(group(strategy=strategy), 1) == Plan(stop, start, 0.0)


@pytest.mark.promise("S02")
@pytest.mark.parametrize(
    ("kind", "well", "comes_back"),
    [
        ("permanent", ENDED_BADLY, True),
        ("permanent", ENDED_WELL, True),
        ("transient", ENDED_BADLY, True),
        ("transient", ENDED_WELL, False),
        ("temporary", ENDED_BADLY, False),
        ("temporary", ENDED_WELL, False),
    ],
)
def test_a_kind_says_what_comes_back(kind, well, comes_back):
    plan = dies(group(kind=kind), 2, well=well)
    assert plan == (Plan((), (2,), 0.0) if comes_back else None)


@pytest.mark.promise("S03")
def test_more_than_max_within_the_time_gives_up_and_stops_the_rest_backwards():
    some = group(max=2, within=10.0)
    assert dies(some, 0, 0.0) == Plan((), (0,), 0.0)
    assert dies(some, 1, 4.0) == Plan((), (1,), 0.0)
    end = dies(some, 2, 10.0)
    assert isinstance(end, GiveUp)
    assert (end.child, end.restarts, end.stop) == (2, 2, (3, 1, 0))


@pytest.mark.promise("S03")
@pytest.mark.parametrize(("last", "gives_up"), [(10.0 - 1e-6, True), (10.0 + 1e-6, False)])
def test_a_burst_around_the_end_of_the_time_is_counted_exactly(last, gives_up):
    some = group(max=1, within=10.0)
    dies(some, 0, 0.0)
    assert isinstance(dies(some, 0, last), GiveUp) is gives_up


@pytest.mark.promise("S03")
def test_with_no_restarts_allowed_the_first_death_gives_up():
    assert isinstance(dies(group(max=0), 0), GiveUp)


def test_what_is_not_restarted_does_not_count():
    some = group(max=1, kind="transient")
    for child in range(3):
        assert dies(some, child, well=ENDED_WELL) is None
    assert dies(some, 3) == Plan((), (3,), 0.0)


def test_a_rank_that_ended_well_starts_again_with_its_group():
    some = group(kind="transient", strategy="one-for-all")
    assert dies(some, 1, well=ENDED_WELL) is None
    assert dies(some, 2) == Plan((3, 0), (0, 1, 2, 3), 0.0)
    assert dies(some, 2) == Plan((3, 1, 0), (0, 1, 2, 3), 0.0)


def test_deaths_heard_of_together_count_once_where_one_restart_answers_them():
    some = group(max=1, strategy="one-for-all")
    assert some.ended([(1, False), (3, False)], 0.0) == Plan((2, 0), (0, 1, 2, 3), 0.0)
    alone = group(max=1)
    assert isinstance(alone.ended([(1, False), (3, False)], 0.0), GiveUp)


def test_an_earlier_rank_that_dies_with_a_later_one_widens_the_rest():
    some = group(strategy="rest-for-one")
    assert some.ended([(2, False), (1, False)], 0.0) == Plan((3,), (1, 2, 3), 0.0)


def test_the_first_restart_is_at_once_and_later_ones_wait_twice_as_long_each():
    some = group(max=9, within=10.0, backoff=1.0)
    delays = [dies(some, 0, float(now)).delay for now in range(7)]
    assert delays == [0.0, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert dies(some, 0, 100.0).delay == 0.0


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"max": -1}, ValueError, "max is 0 or more, not -1"),
        ({"max": 1.5}, TypeError, "max counts restarts, it is an integer, not 1.5"),
        ({"max": True}, TypeError, "max counts restarts"),
        ({"within": "1m"}, TypeError, "within is a number, not '1m'"),
        ({"backoff": -0.1}, ValueError, "backoff is 0 or more, not -0.1"),
        ({"within": float("nan")}, ValueError, "within is 0 or more, not nan"),
        (
            {"strategy": "all"},
            ValueError,
            "one-for-all, rest-for-one, not 'all'",
        ),
        ({"kind": "once"}, ValueError, "one of permanent, transient, temporary, not 'once'"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(fields, error, text):
    with pytest.raises(error, match=text):
        Restart(**fields)


def test_policies_and_decisions_are_values():
    policy = Restart(max=5, strategy="rest-for-one")
    assert copy.deepcopy(policy) == policy != Restart()
    assert "max=5" in repr(policy)
    decisions = (Decision.HANDLED, Decision.RESTART, Decision.ESCALATE)
    assert [bool(one) for one in decisions] == [True, True, False]
    assert copy.deepcopy(Decision.RESTART) is Decision.RESTART


class Model:
    """OTP's supervisor as its manual tells it, over children that are up, down or deleted."""

    def __init__(self, policy, count):
        self.policy = policy
        self.up = dict.fromkeys(range(count), True)
        self.log = []
        self.over = False

    def exit(self, child, well, now):
        if self.over or not self.up.get(child):
            return
        self.up[child] = False
        again = {"permanent": True, "transient": not well, "temporary": False}[self.policy.kind]
        if not again:
            return
        self.log = [at for at in self.log if now - at <= self.policy.within] + [now]
        if len(self.log) > self.policy.max:
            self.over = True
            self.up = dict.fromkeys(self.up, False)
            return
        first = {"one-for-one": child, "one-for-all": 0, "rest-for-one": child}
        last = child if self.policy.strategy == "one-for-one" else len(self.up) - 1
        for one in range(first[self.policy.strategy], last + 1):
            self.up[one] = True


@pytest.mark.promise("S02")
@given(
    policy=st.builds(
        Restart,
        max=st.integers(0, 4),
        within=st.sampled_from([0.0, 1.0, 5.0]),
        strategy=st.sampled_from(STRATEGIES),
        kind=st.sampled_from(KINDS),
    ),
    events=st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    ),
)
def test_any_course_of_deaths_leaves_what_otp_would_leave(policy, events):
    model, some = Model(policy, 4), Group(policy, range(4))
    up = dict.fromkeys(range(4), True)
    now, over = 0.0, False
    for child, well, wait in events:
        now += wait
        if over or not up[child]:
            continue
        model.exit(child, well, now)
        up[child] = False
        answer = dies(some, child, now, well)
        if isinstance(answer, GiveUp):
            over = True
            assert all(up[one] for one in answer.stop)
            up = dict.fromkeys(up, False)
        elif answer is not None:
            assert all(up[one] for one in answer.stop)
            assert list(answer.stop) == sorted(answer.stop, reverse=True)
            assert list(answer.start) == sorted(answer.start)
            assert set(answer.stop) | {child} <= set(answer.start)
            up |= dict.fromkeys(answer.start, True)
        assert (up, over) == (model.up, model.over)
