"""Small folder trees that look like installed toolkits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, text: str = "", *, executable: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if executable:
        path.chmod(0o755)
    return path


def script(path: Path, body: str) -> Path:
    return write(path, f"#!/bin/sh\n{body}\n", executable=True)


def cuda(home: Path, number: int = 13000, *, archs: str = "75 80 90 100") -> Path:
    """A CUDA toolkit; `number` is the value of CUDA_VERSION."""
    write(home / "include/cuda.h", f"#define CUDA_VERSION {number}\n")
    write(home / "include/cuda_runtime_api.h", f"#define CUDART_VERSION  {number}\n")
    write(home / "lib64/libcudart_static.a")
    lines = "".join(f"compute_{arch}\\n" for arch in archs.split())
    script(
        home / "bin/nvcc",
        f"case $1 in --list-gpu-arch) printf '{lines}';; "
        f"-v) echo '#$ _SPACE_= '; echo '#$ TOP={home}/bin/..';; esac",
    )
    return home


def rocm(
    home: Path, version: tuple[int, int, int] = (6, 4, 43482), *, library: str = "lib"
) -> Path:
    """A ROCm with HIP of that version."""
    names = zip(("MAJOR", "MINOR", "PATCH"), version, strict=True)
    header = "".join(f"#define HIP_VERSION_{name} {value}\n" for name, value in names)
    write(home / "include/hip/hip_version.h", header)
    write(home / "include/hip/hip_runtime_api.h")
    write(home / library / f"libamdhip64.so.{version[0]}")
    return home
