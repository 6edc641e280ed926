"""Useful steps of a run: those whose update is in the weights at the end of the window."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks/training"))

from count import Line, Useful, costs, read, shares, useful


def lines(*told):
    return [Line(float(time), step, ranks) for time, step, ranks in told]


def test_what_was_done_before_and_after_the_window_does_not_count():
    told = lines((0, 1, 2), (1, 2, 2), (2, 3, 2), (3, 4, 2), (4, 5, 2))
    assert useful(told, 1, 3, 2) == Useful(2, 2.0, 0)


def test_steps_that_were_done_again_count_once_and_are_told_as_lost():
    told = lines((0, 10, 2), (1, 11, 2), (2, 12, 2), (3, 11, 2), (4, 12, 2), (5, 13, 2), (6, 14, 2))
    assert useful(told, 0, 5, 2) == Useful(3, 3.0, 2)


def test_what_a_restart_under_way_at_the_end_takes_back_does_not_count():
    told = lines((0, 10, 2), (1, 11, 2), (2, 12, 2), (9, 11, 2))
    assert useful(told, 0, 5, 2) == Useful(0, 0.0, 2)


def test_a_step_of_half_of_the_ranks_counts_half_where_ranks_count():
    told = lines((0, 1, 2), (1, 2, 1), (2, 3, 2), (3, 4, 2))
    assert useful(told, 0, 2, 2) == Useful(2, 1.5, 0)


def test_a_step_that_nobody_told_of_before_the_next_one_counts():
    told = lines((0, 1, 2), (1, 2, 2), (2, 4, 2), (3, 5, 2))
    assert useful(told, 0, 2, 2) == Useful(3, 3.0, 0)


def test_several_ranks_may_tell_of_the_same_step(tmp_path):
    (tmp_path / "steps-0").write_text("1.0 1 2\n2.0 2 2\n3.0 3 2\n4.0 4")
    (tmp_path / "steps-1").write_text("1.1 1 2\n2.1 2 2\n")
    told = read(tmp_path)
    assert [line.time for line in told] == [1.0, 1.1, 2.0, 2.1, 3.0]
    assert useful(told, 1.5, 2.5, 2) == Useful(1, 1.0, 0)


def test_a_run_that_ends_in_the_window_gives_no_figure():
    with pytest.raises(ValueError, match="0 after it"):
        useful(lines((0, 1, 2), (1, 2, 2)), 0, 5, 2)


def test_a_fault_costs_the_time_until_there_is_a_step_more_than_before_it():
    told = lines((0, 1, 2), (1, 2, 2), (2, 3, 2), (6, 2, 2), (7, 3, 2), (8, 4, 2), (9, 5, 2))
    assert costs(told, [2.5, 8.5, 9.5]) == [4.5, 0.0]


def test_what_a_fault_leaves_is_told_by_the_minute_it_is_in():
    told, step, now = [], 0, 0.0
    while now < 130:  # the machine gets slower and slower
        if any(at <= now < at + 1.5 for at in (30, 60, 90)):  # for which nothing is done
            now += 1.5
        told.append(Line(now, step, 2))
        step, now = step + 1, now + 0.05 * (1 + now / 200)
    found = shares(told, [30, 60, 90], 30)
    assert found == pytest.approx([0.95] * 3, abs=0.004)


def test_steps_that_a_fault_took_back_are_not_left():
    told = [Line(k / 10, k, 2) for k in range(301)]
    told += [Line(30 + k / 10, 280 + k, 2) for k in range(1, 400)]
    assert shares(told, [30], 30) == pytest.approx([280 / 300], abs=0.001)


def test_a_period_that_is_not_covered_gives_no_figure():
    told = [Line(k / 10, k, 2) for k in range(601)]
    assert shares(told, [5, 40], 30) == []
    assert shares([], [5], 30) == []
