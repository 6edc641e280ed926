"""What connections that say nothing cost the calls of those who do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hosts import Bench

CROWD = Path(__file__).resolve().parents[2] / "ci/rigs/crowd.py"
SECONDS = "3"  # of calls, with a crowd and without
# Seconds on a line of input, calls in each of them on a line of output.
RATE = """
for line in sys.stdin:
    count, began = 0, time.monotonic()
    while time.monotonic() < began + float(line):
        echo.echo.call_one(1).get(60)
        count += 1
    print(count / (time.monotonic() - began), flush=True)
"""


def slowed(bench: Bench, preamble: str, rounds: int) -> list[float]:
    """How many times as long calls to a host take while 10,000 connections do nothing at its port.

    What they take without is that of the calls before and after. The crowd works, too, and what
    that takes of the processors is counted with it.
    """
    program = bench.attach(preamble + RATE, "1", stdin=subprocess.PIPE)
    assert program.stdin is not None
    assert program.stdout is not None

    def rate() -> float:
        print(SECONDS, file=program.stdin, flush=True)
        return float(program.stdout.readline())  # type: ignore[union-attr]

    rate()  # what is imported for later is there
    found = []
    before = rate()
    here, there = bench.network.hosts
    for _ in range(rounds):
        crowd = here.start(
            [sys.executable, str(CROWD), there.address, "26600"], stdout=subprocess.PIPE
        )
        assert crowd.stdout is not None
        crowd.stdout.readline()
        crowd.stdout.readline()
        beside = rate()
        crowd.kill()
        crowd.wait()
        after = rate()
        found.append((before + after) / 2 / beside)
        before = after
    program.stdin.close()
    program.wait()
    return found
