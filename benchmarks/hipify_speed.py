"""The converter's cost: 3 MB of sources cold and warm, memory, and growth with size.

The tree is made of native/cuda and of the test cases, put together to files of 20 kB with a line
that makes each differ, until it has 3 MB; `--tree DIR` measures another one. Every figure is of a
new interpreter, its start included; memory is counted over a run on one such file, which loads all
tables. CPU seconds are given beside wall seconds, since other work on a machine moves only the
latter; the limits are on CPU seconds.
"""

# /// script
# dependencies = ["click", "packaging"]
# ///

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (ROOT / "native/cuda", ROOT / "tests/port/hipify/cases")
SUFFIXES = (".cu", ".cuh", ".cpp", ".c", ".h", ".hpp")
FILE_SIZE = 20_000
LIMITS = {"cold": 5.0, "warm": 0.5, "memory": 10.0, "growth": 2.5}


def make_tree(folder: Path, size: int) -> Path:
    """A tree of at least `size` bytes."""
    originals = [p for root in SOURCES for p in sorted(root.rglob("*")) if p.suffix in SUFFIXES]
    written = number = 0
    text = b""
    while written < size:
        for path in originals:
            text += path.read_bytes() + b"\n// copy %d\n" % number
            if len(text) > FILE_SIZE:
                target = folder / f"{number % 10}/{number:04}{path.suffix}"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text)
                written += len(text)
                number += 1
                text = b""
    return folder


def measure(tree: Path, out: Path) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and peak bytes of one conversion."""
    command = [sys.executable, "-m", "port.hipify", str(tree), "-o", str(out), "--json"]
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in {0, 1}:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def best(tree: Path, out: Path, runs: int, *, cold: bool) -> tuple[float, float, int]:
    """The run with the least CPU time of `runs`."""
    found = []
    for _ in range(runs):
        if cold:
            shutil.rmtree(out, ignore_errors=True)
        found.append(measure(tree, out))
    return min(found, key=lambda run: run[1])


def size_of(tree: Path) -> int:
    return sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, help="measure this tree instead")
    parser.add_argument("--quick", action="store_true", help="one run of each")
    options = parser.parse_args()
    runs = 1 if options.quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = options.tree or make_tree(folder / "one", 3_000_000)
        size = size_of(tree)
        single = make_tree(folder / "single", 1)
        idle = best(single, folder / "out-single", runs, cold=True)
        cold = best(tree, folder / "out", runs, cold=True)
        warm = best(tree, folder / "out", runs, cold=False)
        twice = folder / "two"
        for part in ("a", "b"):
            shutil.copytree(tree, twice / part)
        double = best(twice, folder / "out-two", runs, cold=True)
    figures = {
        "cold": cold[1],
        "warm": warm[1],
        "memory": (cold[2] - idle[2]) / size,
        "growth": (double[1] - idle[1]) / (cold[1] - idle[1]),
    }
    print(f"tree: {size / 1e6:.2f} MB; one file alone: {idle[1]:.2f} s CPU, {idle[2] / 1e6:.0f} MB")
    print(f"cold:   {cold[1]:6.2f} s CPU, {cold[0]:6.2f} s wall (limit {LIMITS['cold']} s)")
    print(f"warm:   {warm[1]:6.2f} s CPU, {warm[0]:6.2f} s wall (limit {LIMITS['warm']} s)")
    memory, growth = figures["memory"], figures["growth"]
    print(f"memory: {memory:6.1f} x input, over one file alone (limit {LIMITS['memory']} x)")
    print(f"twice the input: {growth:.2f} x the time (limit {LIMITS['growth']} x)")
    missed = [name for name, limit in LIMITS.items() if figures[name] > limit]
    if missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
