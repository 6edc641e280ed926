"""How long recovery in place takes, until the full mesh answers again.

    python benchmarks/runtime/recovery.py [--rounds 10] [--json]

`proc`: a process is killed (SIGKILL), from the kill until a call on all ranks has its answers, by
a respawn onto a process that stands by, and onto a new one. `host`: the same for a host agent with
its processes, by `replace_node` onto a spare host. `gloo`: with torch, one of four ranks of
`examples/elastic_ddp.py` is killed in a step, from the kill and from when that is known until the
first all-reduce of the new group is done, the step that was lost; and of that, the ranks that join.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import monarch.actor
from monarch.actor import Actor, ActorCrashError, SupervisionError, endpoint, this_host
from monarch.mesh import ProcessMesh

ROOT = Path(__file__).resolve().parents[2]


class Worker(Actor):
    """Answers."""

    @endpoint
    def pid(self) -> int:
        """Give the process."""
        return os.getpid()

    @endpoint
    def agent(self) -> int:
        """Give the host agent: the parent of the zygote."""
        stat = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="ascii")
        return int(stat.rpartition(")")[2].split()[1])

    @endpoint
    def wait(self) -> None:
        """Be busy for longer than the test takes."""
        time.sleep(60)


def until_lost(calls: Any) -> ActorCrashError:
    """Wait for the error of calls to what was killed."""
    try:
        calls.get()
    except ActorCrashError as error:
        return error
    raise AssertionError("nothing was lost")


def proc(rounds: int, spares: int) -> tuple[list[float], list[float]]:
    """Milliseconds to replace one of four processes, from the kill and from the respawn on."""
    procs = this_host().spawn_procs({"n": 4}, spares=spares)
    workers: Any = procs.spawn("w", Worker)
    took, own = [], []
    for round_ in range(rounds):
        rank = round_ % 4
        victim = workers.slice(n=rank)
        pid = victim.pid.call_one().get()
        settle(procs)
        waiting = victim.wait.call()
        start = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        until_lost(waiting)
        known = time.perf_counter()
        procs.respawn([rank])
        workers.pid.call().get()
        end = time.perf_counter()
        took.append((end - start) * 1e3)
        own.append((end - known) * 1e3)
    procs.stop().get()
    return took, own


def host(rounds: int, spare_procs: int) -> list[float]:
    """Milliseconds to replace one of three hosts with two processes each, from the kill on."""
    took = []
    for _ in range(rounds):
        mesh = ProcessMesh.local(hosts=3, gpus_per_host=2, spares=1, spare_procs=spare_procs)
        workers: Any = mesh.spawn("w", Worker)
        agent = next(iter(workers.slice(hosts=1).agent.call().get().values()))
        workers.pid.call().get()
        settle(mesh)
        waiting = workers.slice(hosts=1).wait.call()
        start = time.perf_counter()
        os.kill(agent, signal.SIGKILL)
        mesh.replace_node(until_lost(waiting).node_id)
        workers.pid.call().get()
        took.append((time.perf_counter() - start) * 1e3)
        mesh.stop().get()
    return took


def gloo(rounds: int) -> dict[str, list[float]]:
    """Milliseconds until the first all-reduce of a new group with a process that stands by."""
    spec = importlib.util.spec_from_file_location("elastic_ddp", ROOT / "examples/elastic_ddp.py")
    assert spec is not None
    assert spec.loader is not None
    elastic = sys.modules["elastic_ddp"] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "examples"))
    spec.loader.exec_module(elastic)
    training = elastic.Training(elastic.processes(4))
    step = 0
    found: dict[str, list[float]] = {"joined": [], "known": [], "killed": []}
    for round_ in range(rounds):
        settle(training.procs)
        pid = training.trainers.slice(ranks=round_ % 4).pid.call_one().get()
        step += 1
        killed = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        try:
            training.trainers.train.call(step).get()
        except (SupervisionError, monarch.actor.ActorError):
            known = time.perf_counter()
            step = training.recover()
        training.trainers.train.call(step).get()
        done = time.perf_counter()
        found["known"].append((done - known) * 1e3)
        found["killed"].append((done - killed) * 1e3)
        start = time.perf_counter()
        training.form()
        found["joined"].append((time.perf_counter() - start) * 1e3)
    training.procs.stop().get()
    return {
        "gloo, all ranks join": found["joined"],
        "gloo, the first all-reduce after the loss is known": found["known"],
        "gloo, the same after the kill": found["killed"],
    }


def settle(procs: Any) -> None:
    """Wait until those that stand by are ready."""
    for spares in procs._procs.request.spares:  # noqa: SLF001 - not for programs
        spares.ready().get()


def main() -> None:
    """Measure, and print medians with the slowest."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--gloo", action="store_true", help="the group of gloo alone")
    asked = parser.parse_args()
    monarch.actor.unhandled_fault_hook = lambda failure: None  # noqa: ARG005 - its name is part of the type
    found: dict[str, list[float]] = {}
    if not asked.gloo:
        found["proc, one stands by"], found["of that after the loss is known"] = proc(
            asked.rounds, 1
        )
        found["proc, a new one"], _ = proc(asked.rounds, 0)
        found["host, a spare with processes that stand by"] = host(max(asked.rounds // 2, 1), 1)
        found["host, a spare"] = host(max(asked.rounds // 2, 1), 0)
    if importlib.util.find_spec("torch") is not None:
        found |= gloo(asked.rounds)
    if asked.json:
        print(json.dumps({"schema": 1, "milliseconds": found}))
        return
    for name, times in found.items():
        print(f"{name}: median {statistics.median(times):.1f} ms, slowest {max(times):.1f} ms")


if __name__ == "__main__":
    main()
