"""HIP headers of each release that a Debian suite has, fetched once into the user's cache."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from port.build.cache import cache_folder
from port.errors import EnvironmentMissingError
from port.hipify.tables_gen.fetch import Cache

SUITES = {"5.2": "bookworm", "5.7": "trixie", "6.4": "sid", "7.1": "experimental"}
"""Suites by the release of the table; experimental has 7.2, whose names are a superset of 7.1's."""


@cache
def include_folder(release: str) -> Path | str:
    """The include folder with a release's headers, or why there is none."""
    if shutil.which("g++") is None:
        return "g++ is not installed"
    try:
        root = Cache(cache_folder() / "headers").debian(SUITES[release], ["libamdhip64-dev"])
    except EnvironmentMissingError as error:
        return f"the headers of HIP {release} cannot be fetched here: {error}"
    return root / "usr" / "include"


@cache
def hip_clang() -> str | None:
    """A clang that compiles HIP for the devices of 6.4, as Debian 12's own does not."""
    for name in ("clang", *(f"clang-{version}" for version in range(30, 16, -1))):
        path = shutil.which(name)
        if path is None:
            continue
        probe = [path, "-x", "hip", "--cuda-host-only", "--offload-arch=gfx942", "-nogpulib"]
        probe += ["-nogpuinc", "-E", "-"]
        if subprocess.run(probe, input=b"", capture_output=True, check=False).returncode == 0:
            return path
    return None


def clang_says(
    path: Path, release: str, side: str, standard: str
) -> subprocess.CompletedProcess[str]:
    """What clang says of a kernel file for one side of a gfx90a; skips where it cannot."""
    clang, headers = hip_clang(), include_folder(release)
    if clang is None or isinstance(headers, str):
        pytest.skip(f"no clang for HIP, or no headers: {headers}")
    command = [clang, "-x", "hip", f"--cuda-{side}-only", "--offload-arch=gfx90a", "-nogpulib"]
    command += [f"-std={standard}", "-fsyntax-only", "-D__HIP_PLATFORM_AMD__"]
    command += ["-isystem", str(headers), f"--rocm-path={headers.parent}", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def errors_of(text: str, release: str, language: str, *options: str) -> str:
    """What g++ says against `text` with the headers of a release; skips without them."""
    folder = include_folder(release)
    if isinstance(folder, str):
        pytest.skip(folder)
    standard = "gnu11" if language == "c" else "c++17"
    done = subprocess.run(
        [
            *("g++", "-x", language, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra"),
            *("-Werror", "-Wconversion", "-Wno-deprecated-declarations", *options),
            *("-D__HIP_PLATFORM_AMD__", "-D__HIP_PLATFORM_HCC__", "-isystem", str(folder), "-"),
        ],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr
