"""The simulator's seeds, as one run of the suite has them, and casts at two sizes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ci import cpp

SEEDS = 1000
PARTS = 2


@pytest.fixture(scope="session")
def simulator() -> Path:
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in cpp.SIMULATION.commands("monarch_sim"):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert done.returncode == 0, done.stdout + done.stderr
    return cpp.SIMULATION.folder / "monarch_sim"


def run(program, *options):
    return subprocess.run([program, *options], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.promise("R01")
@pytest.mark.promise("R02")
@pytest.mark.promise("S01")
@pytest.mark.promise("S06")
@pytest.mark.promise("N02")
def test_a_thousand_seeds_with_faults_keep_every_promise(simulator):
    share = SEEDS // PARTS

    def part(number):
        return run(simulator, "--first", str(1 + number * share), "--seeds", str(share))

    with ThreadPoolExecutor(PARTS) as pool:
        for done in pool.map(part, range(PARTS)):
            assert done.returncode == 0, done.stdout + done.stderr


def cast(simulator, procs):
    done = run(simulator, "--scale", str(procs), "--fan-out", "8")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_ten_times_as_many_processes_cost_levels_and_neither_messages_nor_bytes(simulator):
    few, many = cast(simulator, 400), cast(simulator, 4000)
    assert (few["hosts"], few["depth"]) == (50, 2)
    assert (many["hosts"], many["depth"]) == (500, 3)
    assert many["agent_messages_max"] <= 1.5 * few["agent_messages_max"]
    assert many["client_messages"] <= 1.5 * few["client_messages"]
    assert many["agent_bytes_max"] <= 1.5 * few["agent_bytes_max"]
    assert many["client_bytes"] <= 1.5 * few["client_bytes"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--seed",), "lacks its value"),
        (("--seed", "x"), 'takes a number, not "x"'),
        (("--mode", "fast"), "safety, liveness or both"),
        (("--scale", "9", "--fan-out", "1"), "is at least 2"),
        (("--weeds", "1"), "no option --weeds"),
    ],
)
def test_options_that_cannot_be_are_refused(simulator, options, says):
    done = run(simulator, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
