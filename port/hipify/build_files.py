"""Build files: compiler flags, libraries and CMake commands that only CUDA's tools know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = {"build-flag": "A build file asks for CUDA's compiler, libraries or flags"}

_NAMES = re.compile(
    r"(?:^|/)(?:CMakeLists\.txt|[Mm]akefile[\w.]*|GNUmakefile|setup\.py|setup\.cfg|meson\.build"
    r"|BUILD(?:\.bazel)?|[\w.-]+\.(?:cmake|mk|bzl|gn)|pyproject\.toml)$"
)
_REMEDIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"-{1,2}(?:gencode|generate-code)\b|\b(?:sm|compute)_\d+a?\b"
            r"|(?<![\w-])-{1,2}(?:arch|code|gpu-architecture)[= ,\"']*(?:sm|compute)_\w+"
        ),
        "name AMD targets with --offload-arch=gfx…",
    ),
    (
        re.compile(
            r"--use_fast_math|--?(?:expt-(?:relaxed-constexpr|extended-lambda)|extended-lambda)"
            r"|--ptxas-options|-X(?:ptxas|compiler|cudafe)\b|--compiler-options\b|-ccbin\b"
            r"|-{1,2}maxrregcount|--threads\b|-lineinfo\b|--generate-line-info|-rdc="
            r"|--default-stream\b|--relocatable-device-code|--fmad|-fatbin\b|-cubin\b"
        ),
        "hipcc takes clang's flags (-ffast-math, -fgpu-rdc, …); give nvcc's to nvcc alone",
    ),
    (
        re.compile(
            r"(?<![\w-])-l(?:cudart(?:_static)?|cuda|cudadevrt|nvrtc|cublas(?:Lt)?|curand|cufft"
            r"|cusparse|cusolver|nvToolsExt|nvidia-ml|nccl)\b|\bCUDA::\w+|\bCUDA_\w*LIBRAR\w*"
        ),
        "link amdhip64, hiprtc, hipblas, hiprand, hipfft, hipsparse, hipsolver or rccl on ROCm",
    ),
    (
        re.compile(
            r"\bfind_package\s*\(\s*CUDA\w*|\benable_language\s*\(\s*CUDA\b|\bCMAKE_CUDA_\w+"
            r"|\bproject\s*\([^)#]*\bCUDA\b|\bcuda_add_\w+|\$<COMPILE_LANGUAGE:CUDA\S*"
            r"|\bCUDA_(?:ARCHITECTURES|NVCC_\w+|TOOLKIT_\w+|STANDARD\w*|SEPARABLE_\w+)\b"
        ),
        "compile the converted sources with hipcc commands under the ROCm platform",
    ),
    (
        re.compile(r"\bCUDAExtension\b|\bnvcc\b|\bCUDA_HOME\b|\bCUDA_PATH\b"),
        "ROCm's compiler is hipcc under ROCM_PATH",
    ),
)


def is_build_file(path: str) -> bool:
    """Whether the file at `path` is read by a build tool."""
    return _NAMES.search(path) is not None


def check(path: str, data: bytes) -> Iterator[Finding]:
    """What a build file asks for that a ROCm build has to give otherwise; one finding a line."""
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        code = line.split("#", 1)[0]
        for pattern, remedy in _REMEDIES:
            match = pattern.search(code)
            if match is not None:
                yield Finding(
                    path,
                    number,
                    len(code[: match.start()].encode()) + 1,
                    "build-flag",
                    "warning",
                    match.group().strip(),
                    f"the build file names {match.group().strip()}, which is CUDA's",
                    remedy,
                )
                break
