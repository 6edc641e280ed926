"""The count of instructions of a call: how it is got, and when it is too much."""

from __future__ import annotations

import json

import pytest

from ci import call_path


def test_what_a_run_does_once_is_not_counted_as_calls():
    assert call_path.per_call({500: 1_000_000 + 500 * 2000, 1500: 1_000_000 + 1500 * 2000}) == 2000


@pytest.mark.parametrize("line", ["summary: 12345", "totals: 12345"])
def test_the_total_is_read_from_the_profile(line):
    assert call_path.total_of(f"events: Ir\n{line}\n") == 12345


def test_a_profile_without_a_total_is_an_error():
    with pytest.raises(ValueError, match="no total"):
        call_path.total_of("events: Ir\n")


def test_within_the_tolerance_there_is_nothing_to_say():
    assert (
        call_path.findings({"engine": 1030, "link": 900}, {"engine": 1000, "link": 950}, 0.03) == []
    )


def test_more_than_the_tolerance_is_a_finding_with_both_figures():
    found = call_path.findings({"engine": 1100}, {"engine": 1000}, 0.03)
    assert found == ["engine: 1100 instructions, 10 % above 1000"]


def test_a_path_without_a_figure_is_a_finding():
    assert "no figure" in call_path.findings({"new": 5}, {}, 0.03)[0]


def test_the_figures_name_every_path_for_every_compiler():
    figures = json.loads(call_path.FIGURES.read_text(encoding="utf-8"))
    assert figures
    for name, counted in figures.items():
        assert name.startswith("g++ ")
        assert set(counted) == {"engine", "link"}
