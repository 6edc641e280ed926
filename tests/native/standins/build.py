"""Builds the stand-in libraries into a folder, with the machine's C compiler and nothing else.

    python tests/native/standins/build.py OUT cuda|rocm5|rocm6|rocm7

prints the folder to put into LD_LIBRARY_PATH.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class StandIn:
    """A pair of libraries: the driver (for ROCm the whole runtime), and the collectives."""

    driver: str
    collectives: str
    hip: bool
    version: int


KINDS = {
    "cuda": StandIn("libcuda.so.1", "libnccl.so.2", hip=False, version=13000),
    # Versions of the real libraries whose headers the wheels are built with.
    "rocm5": StandIn("libamdhip64.so.5", "librccl.so.1", hip=True, version=50221153),
    "rocm6": StandIn("libamdhip64.so.6", "librccl.so.1", hip=True, version=60443484),
    "rocm7": StandIn("libamdhip64.so.7", "librccl.so.1", hip=True, version=70125424),
}

MARKER = "monarch_standin"


def build(out: Path, kind: str) -> Path:
    """Both libraries of a kind in `out / kind`, which is returned."""
    wanted = KINDS[kind]
    folder = out / kind
    folder.mkdir(parents=True, exist_ok=True)
    driver_flags = [f"-DSTANDIN_HIP={int(wanted.hip)}", f"-DSTANDIN_VERSION={wanted.version}"]
    if wanted.hip:
        driver_flags.append(f"-Wl,--version-script={HERE / 'gpu' / 'hip.map'}")
    _compile(HERE / "gpu", folder / wanted.driver, driver_flags)
    _compile(HERE / "collectives", folder / wanted.collectives, ["-ldl", "-lrt"])
    return folder


def _compile(sources: Path, library: Path, flags: list[str]) -> None:
    command = [
        *(os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra"),
        *("-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{library.name}"),
        *(str(source) for source in sorted(sources.glob("*.c"))),
        *("-o", str(library), "-lpthread"),
        *flags,
    ]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), sys.argv[2]))  # noqa: T201 - its output
