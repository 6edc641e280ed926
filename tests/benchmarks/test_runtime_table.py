"""The table of the runtime's benchmark says what was measured, against which goal."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def _harness():
    place = str(ROOT / "benchmarks/runtime")
    sys.path.insert(0, place)
    yield
    sys.path.remove(place)


@pytest.fixture(scope="module")
def targets():
    return importlib.import_module("harness.targets")


@pytest.fixture(scope="module")
def render():
    return importlib.import_module("harness.render")


def result(peer, job, regime="idle cores", raw=10.0, **figures):
    return {"peer": peer, "job": job, "regime": regime, "raw_us": raw, **figures}


def row(rows, label):
    return next(figures for figures in rows if figures.row.label == label)


def test_a_call_is_judged_by_the_raw_round_trip_of_its_own_run(targets):
    results = [
        result("monarch", "one", "pinned", raw=10, call_us=40),
        result("monarch", "one", "pinned", raw=20, call_us=80),
        result("monarch", "one", raw=10, call_us=48),
    ]
    rows = targets.figures(results, {})
    assert row(rows, "call, pinned to one core").peers == {"monarch": 4}
    assert row(rows, "call, pinned to one core").reached() is True
    assert row(rows, "call, idle cores").reached() is False


def test_the_goal_of_a_row_can_be_a_multiple_of_a_peers_figure(targets):
    ours = result("monarch", "one", mib64_array_mb_s=4000)
    theirs = result("ray", "one", mib64_array_mb_s=2000)
    assert row(targets.figures([ours, theirs], {}), "echo 64 MiB, array").goal == pytest.approx(2.6)
    assert row(targets.figures([ours], {}), "echo 64 MiB, array").reached() is None


def test_a_peer_is_given_as_times_worse_whichever_way_is_better(targets):
    results = [
        result("monarch", "one", pipelined_per_s=200_000, cold_s=0.1),
        result("ray", "one", pipelined_per_s=2_000, cold_s=4.0),
    ]
    rows = targets.figures(results, {})
    assert row(rows, "pipelined calls, idle cores").times_worse("ray") == pytest.approx(100)
    assert row(rows, "cold start to first result").times_worse("ray") == pytest.approx(40)


def test_the_table_says_met_and_by_how_much_a_goal_is_missed(targets, render):
    results = [result("monarch", "mesh8", gather_ms=0.3, spawn_s=0.04)]
    lines = render.markdown(targets.figures(results, {"mesh8_ms": 0.08})).splitlines()
    found = {line.split("|")[1].strip(): line for line in lines}
    assert "missed (2.00 x)" in found["call on a mesh of 8"]
    assert "| 0.0800 |" in found["call on a mesh of 8"]
    assert "| met |" in found["8 procs, first results"]


def test_every_row_of_the_table_asks_for_a_job_that_a_peer_has(targets):
    catalogue = importlib.import_module("harness.catalogue")
    jobs = set(catalogue.named("monarch").jobs)
    assert {one.job for one in targets.ROWS} <= jobs
    assert len({one.label for one in targets.ROWS}) == len(targets.ROWS)
