"""A virtual environment a peer, and the program of the physical limits, under .cache/bench."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from harness.catalogue import Entry

ENVIRONMENT_MISSING = 5


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def python_of(entry: Entry, folder: Path, wheel: Path | None = None) -> Path:
    """The interpreter of the peer's environment, which is made anew when it would differ."""
    place = folder / entry.name
    wanted = [sys.version, *entry.requirements, str(wheel)]
    key = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    stamp = place / "complete"
    if not (stamp.exists() and stamp.read_text(encoding="ascii") == key):
        shutil.rmtree(place, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(place)])
        install = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]
        extra = [str(wheel)] if wheel else []
        _run([str(place / "bin/python"), *install, *entry.requirements, *extra])
        stamp.write_text(key, encoding="ascii")
    return place / "bin/python"


def versions(python: Path) -> dict[str, str]:
    """What is installed beside an interpreter."""
    listing = (
        "from importlib.metadata import distributions as d\n"
        "print('\\n'.join(f'{x.name} {x.version}' for x in d()))"
    )
    done = subprocess.run([str(python), "-c", listing], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in sorted(done.stdout.splitlines()))


def limit(source: Path, folder: Path) -> Path:
    """The compiled program of the limits; status 5 without a C++ compiler."""
    key = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    program = folder / f"limit-{key}"
    if not program.exists():
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            print("no C++ compiler on PATH (g++, clang++): install g++", file=sys.stderr)
            raise SystemExit(ENVIRONMENT_MISSING)
        folder.mkdir(parents=True, exist_ok=True)
        options = ["-O2", "-std=c++20", "-pthread"]
        _run([compiler, *options, str(source), "-o", str(program)])
    return program
