"""native/hip is what native/cuda converts to, and compiles and runs for every release."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hip_headers import hip_clang, include_folder
from tests.native.standins import build as standins

ROOT = Path(__file__).resolve().parents[2]
HIP = ROOT / "native/hip"
VERSIONS = {"5.2": 50221153, "5.7": 50731921, "6.4": 60443484, "7.1": 70125424}


def test_it_is_the_conversion_of_native_cuda_and_nothing_is_left_over():
    command = [sys.executable, "-m", "port.hipify", "native/cuda", "-o", "native/hip"]
    done = subprocess.run(
        [*command, "--rocm", "5.2", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_vendor_type_stands_above_the_interface():
    above = [*(ROOT / "native/include").rglob("*.hpp"), *(ROOT / "runtime/bindings").glob("gpu*")]
    assert len(above) > 15
    vendor = re.compile(r"\b(?:cu[A-Z]\w+|cuda[A-Z]\w+|CU[a-z]\w+|hip[A-Z]\w+|nccl[A-Z]\w+)\b")
    found = {
        f"{path.name}: {name}"
        for path in above
        for name in vendor.findall(re.sub(r"//.*", "", path.read_text("utf-8")))
    }
    assert found == set()


def test_nothing_of_the_cxx_library_crosses_to_the_kernels():
    """Else a wheel could be linked with the C++ library of the vendor's compiler alone."""
    text = (ROOT / "native/cuda/launch.hpp").read_text("utf-8")
    assert text.count("(") >= 4
    assert set(re.findall(r"std::\w+", text)) <= {"std::uint64_t", "std::size_t"}


def test_kernels_do_not_know_the_width_of_a_warp():
    kernels = sorted((ROOT / "native/cuda").glob("*.cu*"))
    assert len(kernels) >= 3
    pattern = re.compile(r"warpSize|__shfl|__ballot|__any|__all|__syncwarp|\b(?:31|32)\b|0x[fF]{8}")
    for path in kernels:
        code = re.sub(r"//.*|std::u?int\d+_t|DType::\w+", "", path.read_text("utf-8"))
        assert pattern.findall(code) == [], path


@pytest.mark.slow
@pytest.mark.parametrize("release", VERSIONS)
def test_it_runs_over_the_stand_in_of_a_release(release, tmp_path):
    """The host part; kernels are run where a GPU is."""
    include = include_folder(release)
    if isinstance(include, str):
        pytest.skip(include)
    libraries = build_standins(tmp_path, release)
    (runtime,) = libraries.glob("libamdhip64.so.*")
    program = tmp_path / "data_path"
    command = [
        *("c++", "-std=c++20", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"),
        *("-Wno-deprecated-declarations", "-D__HIP_PLATFORM_AMD__", "-D__HIP_PLATFORM_HCC__"),
        *("-isystem", include, "-I", ROOT / "native/include"),
        *sorted(path for path in HIP.glob("*.cpp") if path.name != "kernels.cpp"),
        ROOT / "tests/native/programs/data_path.cpp",
        *("-o", program, runtime, "-ldl", "-lpthread"),
    ]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    environment |= {"MONARCH_STANDIN_VERSION": str(VERSIONS[release])}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"rocm {built_against(include)}" in done.stdout
    assert "ok: exporter and importer see one memory" in done.stdout
    # From 7 on the runtime has a call of its own; before, it takes an HSA runtime.
    assert ("ok: dma-buf" in done.stdout) == (release == "7.1")


@pytest.mark.slow
@pytest.mark.parametrize("side", ["host", "device"])
@pytest.mark.parametrize("release", VERSIONS)
def test_its_kernels_compile_for_each_release(release, side):
    include, clang = include_folder(release), hip_clang()
    if isinstance(include, str):
        pytest.skip(include)
    if clang is None:
        pytest.skip("no clang that compiles HIP for gfx942 is installed")
    kernels = sorted(HIP.glob("*.cu"))
    assert len(kernels) >= 3
    command = [
        *(clang, "-x", "hip", f"--cuda-{side}-only", "--offload-arch=gfx90a", "-nogpulib"),
        *("-fsyntax-only", "-std=c++20", "-Wall", "-Wextra", "-Werror"),
        *(f"--rocm-path={include.parent}", "-isystem", include, "-I", ROOT / "native/include"),
    ]
    done = subprocess.run([*command, *kernels], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def built_against(include: Path) -> str:
    """How the version number of these headers begins, such as 504 for HIP 5.4."""
    text = (include / "hip/hip_version.h").read_text("utf-8")
    major, minor = (
        re.search(rf"HIP_VERSION_{part}\s+(\d+)", text)[1] for part in ("MAJOR", "MINOR")
    )
    return f"{major}{int(minor):02}"


def build_standins(folder: Path, release: str) -> Path:
    return standins.build(folder, f"rocm{release.partition('.')[0]}")
