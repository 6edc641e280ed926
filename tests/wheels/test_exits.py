"""The GPU modules of real wheels: a process that has loaded them ends as any other."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.wheels.conftest import ROOT, command

pytestmark = pytest.mark.slow
ROUNDS = 50
# With the device runtime in use as far as a machine without a driver has it, and a process below.
USE = """
import sys
import monarch.actor
import monarch._gpu_{platform} as module
assert module.runtime_device_count() >= 0
if sys.argv[1] == "1":
    procs = monarch.actor.this_host().spawn_procs()
    procs.initialized.get(60)
if sys.argv[1] == "2":
    del sys.modules["monarch._gpu_{platform}"], module
"""


@pytest.mark.promise("F07")
@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_a_process_that_has_loaded_the_gpu_module_ends_cleanly_fifty_times(
    built_wheel, tmp_path, platform
):
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    wheel = str(built_wheel(platform))
    subprocess.run([*pip, "--target", str(tmp_path), wheel], check=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    if platform == "rocm":
        environ["LD_LIBRARY_PATH"] = command(ROOT, "runtime-path", "--platform", "rocm").strip()
    for turn in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", USE.format(platform=platform), str(turn % 3)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
