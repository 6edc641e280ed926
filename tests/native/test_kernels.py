"""The kernels: run on the CPU thread by thread, and in the wheels for every architecture."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import doctests
from tests.native import harness

ROOT = Path(__file__).resolve().parents[2]
EMULATION = ROOT / "tests/native/emulation"
CASES = doctests.cases([EMULATION / "kernels_test.cpp"])
# kernel<arguments><<<configuration>>>( becomes a call of the emulation.
_LAUNCH = re.compile(r"(\w+(?:<[^<>;]*>)?)<<<(.+?)>>>\(", re.DOTALL)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The kernels as a CPU program, under sanitizers."""
    folder = tmp_path_factory.mktemp("emulation")
    sources = ROOT / "native/cuda"
    launches = 0
    shared = [sources / name for name in ("kernel_launch.cuh", "kernels.cpp", "launch.hpp")]
    for path in [*sources.glob("*.cu"), *shared]:
        text, count = _LAUNCH.subn(r"emulated(\1, \2)(", path.read_text("utf-8"))
        launches += count
        name = f"{path.name}.cpp" if path.suffix == ".cu" else path.name
        (folder / name).write_text(text, "utf-8")
    assert launches == 4
    launching = folder / "kernel_launch.cuh"
    text = launching.read_text("utf-8")
    # Small blocks: each of their threads is one of the CPU's.
    assert "k_threads = 256" in text
    launching.write_text(text.replace("k_threads = 256", "k_threads = 32"), "utf-8")
    command = [
        *("c++", "-std=c++20", "-g", "-Wall", "-Wextra", "-Werror"),
        *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
        *("-I", folder, "-I", EMULATION, "-I", ROOT / "native/include"),
        *sorted(folder.glob("*.cpp")),
        *(EMULATION / "kernels_test.cpp", "-o", folder / "kernels", "-lpthread"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "kernels"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_kernels_on_the_cpu(program, case):
    doctests.check(program, case)


@pytest.mark.parametrize("platform", harness.PLATFORMS)
def test_device_code_is_there_for_every_architecture_that_was_asked(platform, built_wheel):
    wheel = built_wheel(platform)
    command = [sys.executable, "-m", "port.verify", str(wheel), "--platform", platform, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    checks = {check["code"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["V10"]["ok"], checks["V10"]
    wanted = {"cuda": r"sm_\d+", "rocm": r"gfx\w+"}[platform]
    assert re.search(wanted, checks["V10"]["detail"]), checks["V10"]
