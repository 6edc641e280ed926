"""Real wheels, built once for all tests of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci import built

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Built:
    """A wheel, the tree that it was built from, and the folders its runtime lies in."""

    wheel: Path
    tree: Path
    runtime_path: str


def environment() -> dict[str, str]:
    unwanted = ("GPU_", "CMAKE_", "SKBUILD")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


def command(tree: Path, *arguments: str) -> str:
    environ = {**environment(), "PYTHONPATH": str(tree)}
    scripts = Path(sys.executable).parent
    environ["PATH"] = f"{scripts}:{environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "port.build", *arguments],
        cwd=tree,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="session")
def rocm():
    """The ROCm wheel, against the machine's own ROCm or Debian's packages."""
    wheel = built.wheel("rocm")
    return Built(wheel, ROOT, command(ROOT, "runtime-path", "--platform", "rocm").strip())
