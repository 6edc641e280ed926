"""Real wheels, built once for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci import built

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "CMakeLists.txt", ".gitignore")
FOLDERS = ("cmake", "port", "runtime", "native")


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


def build(place: Path, platform: str) -> Built:
    """Build a wheel of this checkout's sources from a copy of them in `place`."""
    tree = place / "tree"
    tree.mkdir(parents=True)
    for name in SOURCES:
        shutil.copy2(ROOT / name, tree / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    command(tree, "wheel", "--platform", platform)
    (wheel,) = tree.glob("dist/*.whl")
    return Built(wheel, tree, "")


@pytest.fixture(scope="session")
def rocm():
    """The ROCm wheel, against the machine's own ROCm or Debian's packages."""
    wheel = built.wheel("rocm")
    return Built(wheel, ROOT, command(ROOT, "runtime-path", "--platform", "rocm").strip())


@pytest.fixture(scope="session")
def rocm_elsewhere(tmp_path_factory):
    """The same sources once more, from a folder with another name."""
    return build(tmp_path_factory.mktemp("a-folder-with-a-longer-name"), "rocm")
