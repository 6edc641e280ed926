"""CUDA from PyPI: nvcc, the headers and the static runtime as build requirements.

`nvidia-cuda-crt` carries crt/, which the runtime's headers include; `cuda_fp16.h` includes
nv/target, which `nvidia-cuda-cccl` carries. CUDA 12's nvcc distribution has no compiler driver,
so CUDA 13 it is.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

from packaging.version import Version

from port.build.toolchains.model import Toolchain, defined
from port.errors import EnvironmentMissingError

REQUIREMENTS = (
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-cccl==13.0.85",
)


def toolchain(otherwise: str) -> Toolchain:
    """The toolchain in this interpreter's site folders. `otherwise` says what else was searched.

    Raises:
        EnvironmentMissingError: it is not there, or incomplete.

    """
    folder = _folder()
    if folder is None:
        raise EnvironmentMissingError(
            f"{otherwise}\nor build with the packages: pip install {' '.join(REQUIREMENTS)}"
        )
    compiler, library = folder / "bin/nvcc", folder / "lib/libcudart_static.a"
    for path in (
        compiler,
        library,
        folder / "include/crt/host_defines.h",
        folder / "nvvm/bin/cicc",
    ):
        if not path.is_file():
            raise EnvironmentMissingError(
                f"{path} is missing; pip install {' '.join(REQUIREMENTS)}"
            )
    number = defined(folder / "include/cuda.h", "CUDA_VERSION")
    listing = subprocess.run(
        [str(compiler), "--list-gpu-arch"], capture_output=True, text=True, check=True
    ).stdout
    return Toolchain(
        platform="cuda",
        version=Version(f"{number // 1000}.{number % 1000 // 10}"),
        compiler=compiler,
        include=folder / "include",
        library=library,
        soname=None,
        offered=tuple(f"sm_{n}" for n in re.findall(r"compute_(\d+)", listing)),
        origin="PyPI's nvidia-cuda distributions",
        digest=" ".join(REQUIREMENTS),
    )


def _folder() -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for folder in sorted(Path(place).glob("cu[0-9]*"), reverse=True):
            if (folder / "bin/nvcc").is_file():
                return folder
    return None
