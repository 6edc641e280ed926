"""`examples/elastic_ddp.py` on torch.distributed: what is lost comes back, and nothing is lost."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
WAIT = 25  # seconds; a collective that nobody abandons ends after 30
# Without the core built in the tree, the package is one that was installed.
ENVIRONMENT = dict(os.environ)
if list((ROOT / "runtime/monarch").glob("_core*.so")):
    ENVIRONMENT["PYTHONPATH"] = str(ROOT / "runtime")


def output(*command, **variables):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env=ENVIRONMENT | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(*options):
    told = output(ROOT / "examples/elastic_ddp.py", "--ranks", "4", *options)
    losses = re.findall(r"step (\d+): loss ([\d.]+)", told)
    generations = re.findall(r"generation (\d+), ([\d.]+) s after", told)
    assert all(float(seconds) < WAIT for _, seconds in generations), told
    return dict(losses), [int(number) for number, _ in generations]


@pytest.fixture(scope="module")
def undisturbed():
    return run("--steps", "60")[0]


def test_the_loss_falls(undisturbed):
    losses = [float(loss) for loss in undisturbed.values()]
    assert len(losses) == 6
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.promise("S09")
def test_ranks_that_are_killed_rejoin_and_the_losses_are_those_of_a_run_without(undisturbed):
    losses, generations = run("--steps", "60", "--kill-at", "7", "--kill-at", "18")
    assert generations == [2, 3]
    assert losses == undisturbed


@pytest.mark.promise("S06")
def test_a_rank_that_is_stopped_holds_nobody(undisturbed):
    losses, generations = run("--steps", "60", "--stop-at", "12")
    assert generations == [2]
    assert losses == undisturbed


_JOINS = """
import os, sys, time
import elastic_ddp
from monarch.actor import ActorError

if __name__ == "__main__":
    training = elastic_ddp.Training(elastic_ddp.processes(2))
    training.generation += 1
    training.values.begin.call_one(training.generation).get()
    one = training.trainers.slice(ranks=0)
    waiting = one.join.call_one(training.values, training.generation)  # for a rank that never comes
    began = time.monotonic()
    training.form()
    try:
        waiting.get()
    except ActorError as error:
        print(str(error).splitlines()[0])
    print(time.monotonic() - began < 15)
    pid = one.pid.call_one().get()
    counts = []
    for _ in range(12):
        training.form()
        training.trainers.train.call(0).get()
        counts.append(len(os.listdir(f"/proc/{pid}/task")))
    print(min(counts[6:]) <= max(counts[:6]), counts)
    training.procs.stop().get()
"""


@pytest.fixture(scope="module")
def joins(tmp_path_factory):
    program = tmp_path_factory.mktemp("joins") / "joins.py"
    program.write_text(_JOINS, encoding="utf-8")
    path = os.pathsep.join(
        filter(None, [str(ROOT / "examples"), ENVIRONMENT.get("PYTHONPATH", "")])
    )
    return output(program, PYTHONPATH=path).splitlines()


@pytest.mark.promise("S09")
def test_who_waits_for_a_group_that_is_given_up_holds_the_next_one_not(joins):
    assert joins[0].endswith("AbandonedError: generation 2 was given up")
    assert joins[1] == "True"


def test_groups_that_are_over_leave_no_threads(joins):
    assert joins[2].startswith("True"), joins[2]
