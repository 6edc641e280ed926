"""monarch.gpu where there is no GPU code: what is missing is said, and how to get it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.monarch.hand_wheels import RUNTIME

ASK = """
import sys
sys.path.insert(0, sys.argv[1])
import monarch
if len(sys.argv) > 2:
    monarch.build_info = lambda: {"platform": sys.argv[2]}
from monarch import gpu
for use in (gpu.devices, gpu.Communicator.unique_id, lambda: gpu.Stream(0)):
    try:
        use()
    except monarch.errors.MonarchError as error:
        print(type(error).__name__, getattr(error, "code", ""), error)
"""


def ask(*arguments):
    command = [sys.executable, "-c", ASK, str(RUNTIME), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_every_use_in_monarch_cpu_says_what_to_install():
    lines = ask("cpu")
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("GpuError unsupported this is monarch-cpu")
        assert "monarch-cuda" in line
        assert "monarch-rocm" in line
        assert "pip uninstall monarch-cpu" in line


def test_a_tree_that_was_never_built_says_so():
    if (RUNTIME / "monarch/_build_info.py").exists():
        pytest.skip("this tree was built in place")
    lines = ask()
    assert len(lines) == 3
    assert all("source tree that was not built" in line for line in lines)


def test_importing_it_loads_nothing_native():
    code = (
        f"import sys; sys.path.insert(0, {str(RUNTIME)!r}); import monarch.gpu;"
        "print([name for name in sys.modules if name.startswith(('monarch._gpu_', 'torch'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
