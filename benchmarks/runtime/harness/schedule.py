"""Runs of all peers, interleaved, each in a fresh process beside a raw round trip."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.catalogue import BOTH_REGIMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.catalogue import Entry

HERE = Path(__file__).resolve().parents[1]
_TICK = os.sysconf("SC_CLK_TCK")
_TIMEOUT = 170
Result = dict[str, Any]


@dataclass(frozen=True)
class Regime:
    """Which processors a run may use: one ("pinned") or two that have nothing else to do."""

    name: str
    cores: frozenset[int]


def regimes() -> list[Regime]:
    """Both, or the pinned one alone where one processor is all that is allowed."""
    allowed = sorted(os.sched_getaffinity(0))
    found = [Regime("pinned", frozenset(allowed[-1:]))]
    if len(allowed) > 1:
        found.append(Regime("idle cores", frozenset(allowed[-2:])))
    return found


@dataclass(frozen=True)
class Run:
    """One job of one peer in one regime."""

    entry: Entry
    python: Path
    environment: dict[str, str]
    job: str
    regime: Regime


def plan(peers: list[tuple[Entry, Path, dict[str, str]]], jobs: list[str]) -> list[Run]:
    """A round: job by job, so that peers meet the same state of the machine."""
    places = regimes()
    return [
        Run(entry, python, environment, job, regime)
        for job in jobs
        for regime in (places if job in BOTH_REGIMES else places[-1:])
        for entry, python, environment in peers
        if job in entry.jobs
    ]


def _busy_seconds() -> float:
    """CPU time of all processes of the machine so far."""
    line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    user, nice, system, _, _, interrupt, soft, *_ = (int(word) for word in line.split()[1:])
    return (user + nice + system + interrupt + soft) / _TICK


def others() -> float:
    """Share of the machine's processors that other programs take at this moment (0 to 1)."""
    before, start = _busy_seconds(), time.monotonic()
    time.sleep(0.2)
    taken = (_busy_seconds() - before) / (time.monotonic() - start) / (os.cpu_count() or 1)
    return min(1.0, taken)


def ping(limit: Path, cores: frozenset[int], count: int) -> Result:
    return dict(json.loads(_pinned([str(limit), "ping", str(count)], cores, None, 60)[0]))


def _pinned(
    command: list[str], cores: frozenset[int], environment: dict[str, str] | None, seconds: float
) -> tuple[str, str]:
    """Output of a command on these processors; its whole session is ended with it."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)  # a child is born with it
    try:
        child = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        os.sched_setaffinity(0, allowed)
    try:
        output, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, errors = child.communicate()
        errors += f"\nno result within {seconds:.0f} s"
    return output, errors


def perform(run: Run, limit: Path, *, quick: bool) -> Result:
    """The result of a run, with the raw round trips and the load right before it."""
    count = 2000 if quick else 10_000
    pinned, *wide = regimes()
    result: Result = {
        "peer": run.entry.name,
        "job": run.job,
        "regime": run.regime.name,
        "others": others(),
        "raw_us": ping(limit, pinned.cores, count)["ping_us"],
    }
    if wide:
        result["raw_idle_us"] = ping(limit, wide[0].cores, count)["ping_us"]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        **run.entry.environment,
        **run.environment,
    }
    paths = [str(HERE), *run.environment.get("PYTHONPATH", "").split(os.pathsep)]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    command = [str(run.python), "-m", "peers", run.entry.adapter, run.job]
    start = time.monotonic()
    environment["BENCH_STARTED"] = repr(start)
    output, errors = _pinned(
        [*command, "quick" if quick else "full"], run.regime.cores, environment, _TIMEOUT
    )
    lines = [line[5:] for line in output.splitlines() if line.startswith("JSON ")]
    found = json.loads(lines[-1]) if lines else {"failed": errors[-500:] or "no result"}
    return {**result, **found, "seconds": time.monotonic() - start}


def perform_all(runs: list[Run], limit: Path, *, quick: bool) -> Iterator[Result]:
    """Results as they come, told on stderr."""
    for number, run in enumerate(runs, 1):
        result = perform(run, limit, quick=quick)
        said = result.get("failed", "").strip().rsplit("\n", 1)[-1] or "ok"
        print(
            f"[{number}/{len(runs)}] {run.entry.name} {run.job}, {run.regime.name}: "
            f"{result['seconds']:.1f} s, {said[:150]}",
            file=sys.stderr,
            flush=True,
        )
        yield result
