"""Jobs of this runtime alone: growth, memory under a queue, and what waiting costs others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from monarch.actor import Actor, endpoint
from peers import measure
from peers.measure import percentile
from peers.peer import now

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.peer import Peer

Result = dict[str, Any]
Scale = dict[str, int]
_MESHES = (1, 2, 4, 8, 16, 32)
_ACTORS = (1, 10, 100, 1000, 10_000)
_QUEUED = 1_000_000
_SPINNER = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
count, end = 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    for _ in range(1000):
        count += 1
print(count)
"""


class Sink(Actor):
    def __init__(self) -> None:
        self.count = 0

    @endpoint
    def add(self, value: int) -> None:
        self.count += value

    @endpoint
    def total(self) -> int:
        return self.count

    @endpoint
    def hold(self, seconds: float) -> None:
        time.sleep(seconds)


def growth(peer: Any, result: Result, scale: Scale) -> None:
    """Calls a second, blocking and pipelined, round robin over 1 to 10^4 actors of one proc."""
    peer.boot()
    procs = peer.host.spawn_procs(per_host={"p": 1}, name="procs")
    cells: list[Any] = []
    rates: dict[str, list[float]] = {"blocking": [], "pipelined": []}
    for size in _ACTORS:
        while len(cells) < size:
            cells.append(procs.spawn(f"cell{len(cells)}", peer.actor))
        peer.wait([cell.inc.call_one(0) for cell in cells])
        start = now()
        for at in range(scale["calls"]):
            cells[at % size].inc.call_one(at).get()
        rates["blocking"].append(scale["calls"] / (now() - start))
        many = scale["pipelined"]
        taken = []
        for _ in range(3):
            start = now()
            peer.wait([cells[at % size].inc.call_one(at) for at in range(many)])
            taken.append(now() - start)
        rates["pipelined"].append(many / percentile(taken, 0.5))
    for kind, found in rates.items():
        result[f"{kind}_flatness"] = min(found) / max(found)
        for size, rate in zip(_ACTORS, found, strict=True):
            result[f"{kind}_{size}_per_s"] = rate


def slope(peer: Peer, result: Result, scale: Scale) -> None:
    """Time of a mesh call over the number of procs, and the line through it."""
    peer.boot()
    times = []
    for size in _MESHES:
        group = peer.spawn(size)
        peer.gathers(group, 20)
        times.append(percentile(peer.gathers(group, scale["gathers"] // 2), 0.5) * 1e6)
        result[f"gather_{size}_us"] = times[-1]
    mean_size, mean_time = sum(_MESHES) / len(_MESHES), sum(times) / len(times)
    pairs = list(zip(_MESHES, times, strict=True))
    both = sum((size - mean_size) * (taken - mean_time) for size, taken in pairs)
    per_proc = both / sum((size - mean_size) ** 2 for size in _MESHES)
    at_zero = mean_time - per_proc * mean_size
    unexplained = sum((taken - at_zero - per_proc * size) ** 2 for size, taken in pairs)
    result["us_per_proc"], result["us_at_zero"] = per_proc, at_zero
    result["r_squared"] = 1 - unexplained / sum((taken - mean_time) ** 2 for taken in times)


def queued(peer: Any, result: Result, _: Scale) -> None:
    """A million small messages to an actor that is busy: peak memory of both processes."""
    peer.boot()
    procs = peer.host.spawn_procs(per_host={"p": 1}, name="procs")
    sink, cell = procs.spawn("sink", Sink), procs.spawn("cell", peer.actor)
    worker = cell.pid.call_one().get()
    sink.total.call_one().get()
    before, before_there = measure.memory(), measure.memory(worker)
    pause = sink.hold.call_one(2.0)
    start = now()
    for _number in range(_QUEUED):
        sink.add.broadcast(1)
    result["sent_s"] = now() - start
    pause.get()
    assert sink.total.call_one().get(timeout=120) == _QUEUED
    result["done_s"] = now() - start
    result["messages_per_s"] = _QUEUED / max(1e-9, result["done_s"] - 2.0)
    result["sender_grew_mb"] = measure.memory()["peak"] - before["resident"]
    result["receiver_grew_mb"] = measure.memory(worker)["peak"] - before_there["resident"]


def _spinners(seconds: float) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            [sys.executable, "-S", "-c", _SPINNER, str(core), str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for core in sorted(os.sched_getaffinity(0))
    ]


def _counted(spinners: list[subprocess.Popen[str]]) -> int:
    return sum(int(spinner.communicate()[0]) for spinner in spinners)


def _taken(work: Callable[[float], None], seconds: float, pids: list[int]) -> tuple[float, float]:
    """Our CPU time as a share of the cores; the share of its rate that a spinner loses."""
    alone, beside, ours, cores = 0, 0, 0.0, 1
    for _ in range(3):
        alone += _counted(_spinners(seconds))
        spinners = _spinners(seconds)
        before = measure.processor_seconds(pids)
        work(seconds)
        ours += measure.processor_seconds(pids) - before
        cores = len(spinners)
        beside += _counted(spinners)
    return ours / (3 * cores * seconds), 1 - beside / alone


def waiting(peer: Peer, result: Result, scale: Scale) -> None:
    """What other processes that keep all cores busy lose to ours, which wait for replies."""
    peer.boot()
    group = peer.spawn(1)
    peer.latencies(group, 0, scale["warm"])
    pids = measure.tree()

    def repeat(pause: float) -> Callable[[float], None]:
        def work(seconds: float) -> None:
            end = now() + seconds
            while now() < end:
                peer.call(group, 0, "sleep", pause)

        return work

    for label, work in (
        ("one_call", lambda seconds: peer.call(group, 0, "sleep", seconds)),
        ("each_10_ms", repeat(0.01)),
        ("each_1_ms", repeat(0.001)),
    ):
        ours, lost = _taken(work, 1.0, pids)
        result[f"{label}_our_share"], result[f"{label}_lost_share"] = ours, lost


def resting(peer: Peer, result: Result, scale: Scale) -> None:
    """CPU time of a program with eight procs that has nothing to do, after work."""
    peer.boot()
    group = peer.spawn(8)
    peer.gathers(group, 20)
    peer.latencies(group, 0, scale["warm"])
    time.sleep(3.0)  # until what a start leaves for idle times, some imports, has been done
    seconds = 5.0
    this = threading.get_native_id()  # it measures, which takes more than all the rest
    before = measure.processor_seconds(measure.tree(), without=this)
    time.sleep(seconds)
    after = measure.processor_seconds(measure.tree(), without=this)
    result["cpu_share"] = (after - before) / seconds


JOBS = {job.__name__: job for job in (growth, slope, queued, waiting, resting)}
