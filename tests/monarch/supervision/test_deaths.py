from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._supervision.deaths import LONGEST, Deaths


class Report(NamedTuple):
    proc: int
    pid: int = 1
    code: int | None = 7
    signal: int | None = None


@pytest.fixture
def deaths():
    made = Deaths(grace=0.2)
    made.watch(5)
    return made


def test_the_link_alone_is_no_finding_before_the_grace_is_over(deaths):
    assert deaths.link_lost(5, 1.0) == []
    assert deaths.deadline() == pytest.approx(1.2)
    assert deaths.tick(1.19) == []
    (dead,) = deaths.tick(1.2)
    assert (dead.proc, dead.exit, dead.expected) == (5, None, False)


@pytest.mark.parametrize("link_first", [True, False])
def test_link_and_report_make_one_finding_in_any_order(deaths, link_first):
    report = Report(5)
    steps = [lambda: deaths.link_lost(5, 1.0), lambda: deaths.exited(report, 1.0)]
    first, second = steps if link_first else reversed(steps)
    assert first() == []
    (dead,) = second()
    assert dead.exit is report
    assert deaths.deadline() is None
    assert deaths.tick(9.0) == []


def test_a_report_whose_link_stays_open_is_found_after_the_grace(deaths):
    report = Report(5)
    assert deaths.exited(report, 1.0) == []
    (dead,) = deaths.tick(1.3)
    assert dead.exit is report


def test_a_process_that_is_seen_to_end_is_waited_for_and_not_for_ever(deaths):
    deaths.link_lost(5, 1.0)
    assert deaths.tick(1.2, lambda proc: proc == 5) == []
    assert deaths.deadline() == pytest.approx(1.25)
    (dead,) = deaths.exited(Report(5), 1.3)
    assert dead.exit.code == 7
    deaths.watch(6)
    deaths.link_lost(6, 2.0)
    (dead,) = deaths.tick(2.0 + LONGEST, lambda _: True)
    assert dead.exit is None


def test_an_end_that_was_asked_for_is_marked_so(deaths):
    deaths.expect(5)
    deaths.link_lost(5, 0.0)
    (dead,) = deaths.exited(Report(5), 0.0)
    assert dead.expected


def test_a_proc_that_was_killed_because_it_hung_is_marked_so(deaths):
    deaths.condemn(5)
    deaths.link_lost(5, 0.0)
    (dead,) = deaths.exited(Report(5, signal=9, code=None), 0.0)
    assert dead.hung


def test_procs_of_others_are_none_of_its_business(deaths):
    deaths.expect(6)
    deaths.condemn(6)
    assert deaths.link_lost(6, 0.0) == []
    assert deaths.exited(Report(6), 0.0) == []
    assert 5 in deaths
    assert 6 not in deaths
    assert deaths.deadline() is None


@pytest.mark.promise("S01")
@given(
    st.lists(
        st.tuples(st.sampled_from(["link", "exit", "tick"]), st.integers(0, 3), st.floats(0, 0.3)),
        max_size=40,
    )
)
def test_every_death_is_found_exactly_once_whatever_the_order(events):
    deaths = Deaths(grace=0.2)
    for proc in range(4):
        deaths.watch(proc)
    now, found, heard = 0.0, [], set()
    for what, proc, delay in events:
        now += delay
        if what == "tick":
            found += deaths.tick(now)
        else:
            heard.add(proc)
            step = (
                deaths.link_lost(proc, now) if what == "link" else deaths.exited(Report(proc), now)
            )
            found += step
    found += deaths.tick(now + 1)
    assert sorted(dead.proc for dead in found) == sorted(heard)
