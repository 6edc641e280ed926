"""Lines of ranks that are alike are told once; those of one rank never are."""

from __future__ import annotations

import pytest

from monarch._proc.aggregate import Aggregator


@pytest.fixture
def lines():
    return Aggregator(lambda label: f"[{label}] ".encode())


@pytest.mark.report("67")
def test_one_line_of_each_of_four_ranks_is_told_once_with_its_count(lines):
    for rank in range(4):
        lines.add(rank, f"w {rank}", 1, b"ready\n")
    assert lines.flush() == [(1, b"[4 similar log lines] ready\n")]
    assert lines.flush() == []


@pytest.mark.report("67")
def test_a_line_that_one_rank_printed_twice_is_told_twice(lines):
    lines.add(0, "w 0", 1, b"ready\nready\n")
    lines.add(1, "w 1", 1, b"ready\n")
    assert lines.flush() == [(1, b"[2 similar log lines] ready\n"), (1, b"[w 0] ready\n")]


def test_lines_that_differ_in_numbers_only_are_alike(lines):
    for rank in range(3):
        lines.add(rank, f"w {rank}", 2, f"rank {rank * 100} took {rank}.5 s\n".encode())
    assert lines.flush() == [(2, b"[3 similar log lines] rank 0 took 0.5 s\n")]


def test_other_lines_and_other_streams_stay_apart_in_order(lines):
    lines.add(1, "w 1", 1, b"a\nb\n")
    lines.add(0, "w 0", 2, b"a\n")
    assert lines.flush() == [(1, b"[w 1] a\n"), (1, b"[w 1] b\n"), (2, b"[w 0] a\n")]
