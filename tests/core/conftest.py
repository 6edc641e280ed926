"""The module `monarch._core`, built from this tree as the CPU wheel holds it."""

from __future__ import annotations

import fcntl
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache/cpp"


@pytest.fixture(scope="session")
def core():
    """The module; it is built into a cache, so that only a change costs time."""
    tag = f"core-{sys.implementation.cache_tag}"
    build, site = CACHE / tag, CACHE / f"{tag}-site"
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    configure = [
        "cmake",
        "-S",
        ROOT,
        "-B",
        build,
        "-G",
        "Ninja",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{tag}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes build once
        for command in (
            [*configure, "-DGPU_PLATFORM=cpu"],
            ["cmake", "--build", build],
            ["cmake", "--install", build, "--prefix", site],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
            assert done.returncode == 0, done.stdout + done.stderr
    package = importlib.import_module("monarch")
    package.__path__.append(str(site / "monarch"))
    return importlib.import_module("monarch._core")
