"""The rows of the table: where each figure is in the results, and the goal for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.catalogue import OURS

if TYPE_CHECKING:
    from collections.abc import Iterable

Result = dict[str, Any]
PINNED, IDLE = "pinned", "idle cores"


@dataclass(frozen=True)
class Row:
    """One figure of a job; `less` tells that smaller is better."""

    label: str
    unit: str
    job: str
    key: str
    goal: float | None = None
    regime: str = IDLE
    less: bool = True
    scale: float = 1.0
    raw: bool = False  # in multiples of the raw round trip of the same run
    times: str = ""  # the goal is a multiple of this peer's figure
    limit: str = ""  # its key in the results of the physical limits
    limit_scale: float = 1.0

    def value(self, result: Result) -> float | None:
        found: Any = result
        for part in self.key.split("."):
            if not isinstance(found, dict) or part not in found:
                return None
            found = found[part]
        value = float(found) * self.scale
        return value / float(result["raw_us"]) if self.raw else value


def _rate(label: str, job: str, key: str, goal: float, **more: Any) -> Row:
    return Row(label, "k/s", job, key, goal, less=False, scale=1e-3, limit_scale=1e-3, **more)


def _echo(label: str, key: str, goal: float, limit: str, times: str = "") -> Row:
    return Row(
        label,
        "GB/s",
        "one",
        key,
        goal,
        less=False,
        scale=1e-3,
        times=times,
        limit=limit,
        limit_scale=1e-3,
    )


ROWS = (
    Row("call, pinned to one core", "x raw", "one", "call_us", 4.7, PINNED, raw=True),
    Row("call, idle cores", "x raw", "one", "call_us", 4.7, raw=True),
    Row("async endpoint, pinned", "x raw", "loop", "call_us", 8, PINNED, raw=True),
    Row("async endpoint, idle cores", "x raw", "loop", "call_us", 8, raw=True),
    _rate("pipelined calls, pinned", "one", "pipelined_per_s", 150, regime=PINNED),
    _rate("pipelined calls, idle cores", "one", "pipelined_per_s", 150, limit="pipelined_per_s"),
    Row("call on a mesh of 8", "ms", "mesh8", "gather_ms", 0.15, limit="mesh8_ms"),
    Row("call on a mesh of 32", "ms", "mesh32", "gather_ms", 0.6, limit="mesh32_ms"),
    Row("call on a mesh of 8, pinned", "ms", "mesh8", "gather_ms", None, PINNED),
    Row("call on a mesh of 32, pinned", "ms", "mesh32", "gather_ms", None, PINNED),
    _echo("echo 1 MiB, bytes", "mib_bytes_mb_s", 2.5, "mib_socket_mb_s"),
    _echo("echo 1 MiB, array", "mib_array_mb_s", 6, "mib_shared_mb_s"),
    _echo("echo 64 MiB, bytes", "mib64_bytes_mb_s", 1.5, "mib64_socket_mb_s"),
    _echo("echo 64 MiB, array", "mib64_array_mb_s", 1.3, "mib64_shared_mb_s", times="ray"),
    Row("cold start to first result", "s", "one", "cold_s", 0.15),
    Row("8 procs, first results", "s", "mesh8", "spawn_s", 0.05, limit="mesh8_first_s"),
    Row("32 procs, first results", "s", "mesh32", "spawn_s", 0.2, limit="mesh32_first_s"),
    Row("kill -9 to failure, idle", "ms", "idle", "detect_ms", 5, limit="mesh8_death_ms"),
    Row("kill -9 to failure, busy", "ms", "busy", "detect_ms", 5, limit="mesh8_death_ms"),
    Row("kill -9 to notice", "ms", "push", "detect_ms", 5, limit="mesh8_death_ms"),
    Row("replace a rank, all answer", "ms", "busy", "replace_ms", 50),
    Row("controller's memory", "MiB", "one", "footprint.controller.resident", 25),
    Row("a proc's memory", "MiB", "one", "footprint.worker.resident", 20),
    Row("memory of the tree, 32 procs", "MiB", "mesh32", "tree_mb", 150),
    _rate("actors in one proc, made and called", "local", "actors_per_s", 50),
    Row("an actor's memory", "KiB", "local", "kib_per_actor", 2),
    Row("threads for 10^4 actors", "", "local", "threads_added", 40),
    Row("slowest / fastest, 1 to 10^4 actors", "", "growth", "pipelined_flatness", 0.8, less=False),
    Row("mesh call, for each proc", "us", "slope", "us_per_proc"),
    Row("mesh call, fit of the line", "R2", "slope", "r_squared", 0.98, less=False),
    Row("10^6 queued messages, sender grew", "MiB", "queued", "sender_grew_mb", 64),
    Row("10^6 queued messages, receiver grew", "MiB", "queued", "receiver_grew_mb", 64),
    Row("others lose to one long wait", "%", "waiting", "one_call_our_share", 5, scale=100),
    Row("others lose to a call each 10 ms", "%", "waiting", "each_10_ms_our_share", 5, scale=100),
    Row("CPU of an idle program, 8 procs", "%", "resting", "cpu_share", 0.5, scale=100),
)


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


@dataclass(frozen=True)
class Figures:
    """What was measured for a row: the median of each peer, the goal, the limit."""

    row: Row
    peers: dict[str, float]
    spread: dict[str, tuple[float, float]]
    goal: float | None
    limit: float | None

    def reached(self, peer: str = OURS) -> bool | None:
        """Whether the goal is met; None without a goal or a figure."""
        if self.goal is None or peer not in self.peers:
            return None
        value = self.peers[peer]
        return value <= self.goal if self.row.less else value >= self.goal

    def times_worse(self, peer: str) -> float | None:
        """How many times worse than ours a peer is; below 1 where it is better."""
        if OURS not in self.peers or peer not in self.peers:
            return None
        ours, theirs = self.peers[OURS], self.peers[peer]
        worse, better = (theirs, ours) if self.row.less else (ours, theirs)
        return worse / better if better > 0 else None


def _figures(row: Row, results: list[Result], limits: Result) -> Figures:
    found: dict[str, list[float]] = {}
    for result in results:
        if result["job"] == row.job and result["regime"] == row.regime:
            value = row.value(result)
            if value is not None:
                found.setdefault(result["peer"], []).append(value)
    peers = {name: median(values) for name, values in found.items()}
    goal = row.goal
    if row.times:
        goal = row.goal * peers[row.times] if row.goal and row.times in peers else None
    limit = limits.get(row.limit)
    return Figures(
        row,
        peers,
        {name: (min(values), max(values)) for name, values in found.items()},
        goal,
        None if limit is None else limit * row.limit_scale,
    )


def figures(results: list[Result], limits: Result) -> list[Figures]:
    """All rows for which something was measured."""
    found = [_figures(row, results, limits) for row in ROWS]
    return [one for one in found if one.peers]
