"""The compilers' view: clang, CUDA headers, HIP headers, and what the projects include besides."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corpus import CorpusError
from tools import REPOSITORY, convert_torch_headers

from port.hipify.tables_gen.fetch import Cache

if TYPE_CHECKING:
    from collections.abc import Container

    from corpus import Project

CUDA_WHEELS = (
    "nvidia-cuda-runtime-cu12==12.6.77",
    "nvidia-cuda-nvcc-cu12==12.6.77",
    "nvidia-cuda-cccl-cu12==12.6.77",
    "nvidia-cuda-nvrtc-cu12==12.6.77",
    "nvidia-cuda-cupti-cu12==12.6.80",
    "nvidia-cuda-profiler-api-cu12==12.6.77",
    "nvidia-nvtx-cu12==12.6.77",
    "nvidia-nvml-dev-cu12==12.9.79",
    "nvidia-cublas-cu12==12.6.4.1",
    "nvidia-curand-cu12==10.3.7.77",
    "nvidia-cusparse-cu12==12.5.4.2",
    "nvidia-cufft-cu12==11.3.0.4",
    "nvidia-cusolver-cu12==11.7.1.2",
    "nvidia-nccl-cu12==2.32.3",
)
HIP_64 = (
    "libamdhip64-dev",
    "libhsa-runtime-dev",
    "libhipblas-common-dev",
    "libhipblas-dev",
    "libhipcub-dev",
    "libhipfft-dev",
    "libhiprand-dev",
    "libhipsolver-dev",
    "libhipsparse-dev",
    "librccl-dev",
    "librocblas-dev",
    "librocfft-dev",
    "librocprim-dev",
    "librocrand-dev",
    "librocsolver-dev",
    "librocsparse-dev",
    "librocthrust-dev",
    "libroctx-dev",
)
TORCH = "torch==2.13.0"
CLANGS = ("clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """clang and the header trees of one run. `shared` maps a name of the corpus to its paths."""

    clang: str
    cuda: Path
    hip: dict[str, Path]
    shared: dict[str, dict[str, tuple[Path, ...]]]

    def command(
        self,
        project: Project,
        tree: Path,
        top: Path,
        unit: str,
        *,
        hip: str | None,
        kernel: bool,
    ) -> list[str]:
        """The syntax check of `unit` in `top`; as CUDA where `hip` is None.

        `tree` is the whole distribution, for the headers that are not converted.
        """
        standard = [] if unit.endswith(".c") else [f"-std={project.std}"]
        command = [self.clang, "-fsyntax-only", "-w", "-ferror-limit=1", *standard]
        if hip is None:
            if kernel:
                command += ["-x", "cuda", "--cuda-host-only", "--cuda-gpu-arch=sm_80"]
                command += ["-nocudalib", f"--cuda-path={self.cuda}"]
            else:
                command += [f"-I{self.cuda / 'include'}"]
        else:
            root = self.hip[hip]
            command += ["-D__HIP_PLATFORM_AMD__", "-DHIP_ENABLE_WARP_SYNC_BUILTINS=1"]
            if kernel:
                command += ["-x", "hip", "--cuda-host-only", "--offload-arch=gfx942"]
                command += ["-nogpulib", f"--rocm-path={root}"]
            if "torch" in project.system:
                command += ["-DUSE_ROCM=1", "-DHIPBLAS_V2"]
        return [*command, *self.search(project, tree, top, hip=hip), unit]

    def search(self, project: Project, tree: Path, top: Path, *, hip: str | None) -> list[str]:
        """Where headers are found, and what the project's build defines."""
        side = "cuda" if hip is None else "hip"
        found = [f"-I{top / folder}" for folder in project.include]
        if hip is not None:
            found += [f"-I{top}", "-isystem", str(self.hip[hip] / "include")]
        for name in project.system:
            for folder in self.shared[name][side]:
                found += ["-isystem", str(folder)]
        defines = (hip is not None and project.hip_define) or project.define
        found += [f"-D{define}" for define in defines]
        for beside in project.beside:
            found += ["-isystem", str(tree / beside)]
        for header in project.force_include:
            found += ["-include", header]
        return found


def bring(cache: Path, *, whole_corpus: bool) -> Toolchain:
    """Fetch every header tree into `cache` (once) and find a clang that knows gfx942.

    The whole corpus needs torch's headers, as its wheel has them and as its ROCm build does.
    """
    clang = next((name for name in CLANGS if shutil.which(name)), None)
    if clang is None:
        raise CorpusError("no clang on PATH: install clang-19 (Debian) or newer")
    headers = Cache(cache / "headers")
    cuda = _cuda(headers, cache / "cuda")
    hip = {"6.4": headers.debian("sid", HIP_64) / "usr"}
    shared = _shared(cache)
    if whole_corpus:
        _torch_headers(cache / "torch", _torch_wheel(cache), _torch_hipify(cache))
    return Toolchain(clang, cuda, hip, shared)


def peers(cache: Path, asked: Container[str]) -> dict[str, Path]:
    """Those converters of `asked` that need no root: torch's folder, the script of hipify-perl."""
    found = {}
    if "port.hipify" in asked:
        found["port.hipify"] = REPOSITORY
    if "torch" in asked:
        found["torch"] = _torch_hipify(cache)
    if "hipify-perl" in asked:
        top = Cache(cache / "headers").debian("sid", ["hipify-perl"])
        found["hipify-perl"] = top / "usr" / "bin" / "hipify-perl"
    return found


def _torch_wheel(cache: Path) -> Path:
    folder = cache / "torch-wheel"
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "-d", str(folder), TORCH], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _torch_hipify(cache: Path) -> Path:
    folder = cache / "torch-hipify" / "torch" / "utils" / "hipify"
    if not folder.exists():
        with zipfile.ZipFile(_torch_wheel(cache)) as archive:
            members = [n for n in archive.namelist() if n.startswith("torch/utils/hipify/")]
            archive.extractall(cache / "torch-hipify", members)
    return folder


def _torch_headers(target: Path, wheel: Path, hipify: Path) -> None:
    """torch's headers twice: as the wheel has them, and converted as its ROCm build does it."""
    if (target / ".complete").exists():
        return
    shutil.rmtree(target, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("torch/include/") and not name.endswith("/"):
                path = target / "cuda" / name.removeprefix("torch/include/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))
    # The build of a CUDA torch writes this file; without it the CUDA headers do not compile.
    (target / "cuda/c10/cuda/impl/cuda_cmake_macros.h").write_text("#pragma once\n")
    shutil.copytree(target / "cuda", target / "hip")
    convert_torch_headers(target / "hip", hipify)
    (target / "hip/c10/hip/impl/hip_cmake_macros.h").write_text("#pragma once\n")
    (target / ".complete").touch()


def _cuda(headers: Cache, target: Path) -> Path:
    """One tree in the shape of an installed toolkit, put together from the wheels."""
    if target.exists():
        return target
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for wheel in CUDA_WHEELS:
        place = headers.wheel(wheel)
        for include in place.glob("**/include"):
            # Not those inside of one: libcu++ keeps a C++ library of its own there.
            outer = include.relative_to(place).parts[:-1]
            if "include" not in outer and "nvvm" not in outer:
                shutil.copytree(include, partial / "include", dirs_exist_ok=True)
    (partial / "nvvm" / "libdevice").mkdir(parents=True)
    (partial / "bin").mkdir()
    partial.rename(target)
    return target


def _shared(cache: Path) -> dict[str, dict[str, tuple[Path, ...]]]:
    python = (Path(sysconfig.get_path("include")),)
    found = importlib.util.find_spec("numpy")
    numpy = tuple(
        folder
        for top in (found.submodule_search_locations or () if found else ())
        for folder in (Path(top) / "_core/include", Path(top) / "core/include")
        if folder.is_dir()
    )
    return {
        "python": {"cuda": python, "hip": python},
        "numpy": {"cuda": numpy, "hip": numpy},
        "torch": {
            "cuda": _torch_paths(cache / "torch" / "cuda"),
            "hip": _torch_paths(cache / "torch" / "hip"),
        },
    }


def _torch_paths(top: Path) -> tuple[Path, ...]:
    return (top, top / "torch" / "csrc" / "api" / "include")
