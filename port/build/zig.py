"""Zig as the host compiler: links against glibc 2.28 whatever the machine's own is.

Zig is installed from PyPI (`ziglang`). CMake wants one program for each tool, so small scripts
stand for `zig c++`, `zig ar` and `zig ranlib`.
"""

from __future__ import annotations

import importlib.util
import platform
import shlex
import sys
from typing import TYPE_CHECKING

from port.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from pathlib import Path

REQUIREMENT = "ziglang==0.17.1"
GLIBC = "2.28"


def environment(folder: Path) -> dict[str, str]:
    """Write the scripts into `folder`; the variables make CMake use them.

    Raises:
        EnvironmentMissingError: zig is not installed for this interpreter.

    """
    if importlib.util.find_spec("ziglang") is None:
        raise EnvironmentMissingError(
            f"zig is not installed for {sys.executable}: pip install {REQUIREMENT}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    target = f"{platform.machine()}-linux-gnu.{GLIBC}"
    tools = {
        "cc": f"cc -target {target}",
        "c++": f"c++ -target {target}",
        "ar": "ar",
        "ranlib": "ranlib",
    }
    for name, arguments in tools.items():
        script = folder / f"zig-{name}"
        line = f'exec {shlex.quote(sys.executable)} -m ziglang {arguments} "$@"'
        script.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        script.chmod(0o755)
    return {
        "CC": str(folder / "zig-cc"),
        "CXX": str(folder / "zig-c++"),
        # Python 3.12's limited API names FILE, and leaves it to others to include stdio.h.
        "CXXFLAGS": "-include stdio.h",
        # CMake takes the compilers from the environment, but not these. zig hands precompiled
        # headers to the linker.
        "CMAKE_ARGS": f"-DCMAKE_AR={folder / 'zig-ar'} -DCMAKE_RANLIB={folder / 'zig-ranlib'} "
        "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
    }
