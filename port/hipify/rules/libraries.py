"""CUDA libraries named in strings: a library opened by name has to be HIP's, or nothing loads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.calls import enclosing_call
from port.hipify.lexer import STRING
from port.hipify.rules.tokens import literal, of_kind, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"library-name": "A CUDA library is named in a string"}

_LIBRARY = re.compile(
    r"^(?P<folder>.*/)?lib(?P<stem>cuda|cudart|nvrtc|nvrtc-builtins|nvidia-ml|nccl|cublas|cublasLt"
    r"|cufft|curand|cusparse|cusolver|cudnn|cupti|nvToolsExt|nvJitLink|cufile|cudadevrt)"
    r"(?P<so>\.so(?P<version>[.\d%{}$a-z]*))?$"
)
_WINDOWS = re.compile(r"^(?:.*[/\\])?(?:nvcuda|cudart64_\w+|nvml|nvrtc64_\w+)\.dll$", re.IGNORECASE)
_HIP_STEM = {
    "cuda": "amdhip64",
    "cudart": "amdhip64",
    "nvrtc": "hiprtc",
    "nccl": "rccl",
    "cublas": "hipblas",
    "cublasLt": "hipblaslt",
    "cufft": "hipfft",
    "curand": "hiprand",
    "cusparse": "hipsparse",
    "cusolver": "hipsolver",
}
_FOLLOWS_ROCM = frozenset(("amdhip64", "hiprtc"))
"""Libraries whose soname carries the ROCm major (libamdhip64.so.6 of ROCm 6); the others count
on their own, so their versioned names are reported."""
_COUNTS = re.compile(r"^(?:\.\d+)+$")
_OPENS = re.compile(r"dlopen|dlmopen|LoadLibrary|[Oo]pen_?[Ll]ib|[Ll]oad_?[Ll]ib|DynamicLib|CDLL")


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Rename a library in a call that opens it; report the name anywhere else."""
    for index in of_kind(unit, STRING):
        text = literal(unit, index)
        if text is None or ("lib" not in text and ".dll" not in text.lower()):
            continue
        match = _LIBRARY.match(text)
        if match is None:
            if _WINDOWS.match(text):
                yield _report(unit, index, text, "HIP's library on Windows is amdhip64_N.dll")
            continue
        wanted = _renamed(match, context.release)
        call = enclosing_call(unit, index)
        opens = call is not None and _OPENS.search(word(unit, call.name))
        if wanted is not None and opens and not match["folder"]:
            old = unit.slice(index, index + 1)
            yield unit.edit(index, index + 1, old.replace(text.encode(), wanted.encode()))
        else:
            hint = f"open {wanted!r} there" if wanted else "HIP has no library for this one"
            yield _report(unit, index, text, hint)


def is_cuda_library(text: str) -> bool:
    """Whether `text` is the file name of a library of CUDA's, on Linux or Windows."""
    return bool(_LIBRARY.match(text) or _WINDOWS.match(text))


def counterpart(text: str) -> str | None:
    """The file name, without a version, of HIP's library for one of CUDA's."""
    match = _LIBRARY.match(text)
    stem = _HIP_STEM.get(match["stem"]) if match else None
    return f"lib{stem}.so" if stem else None


def _renamed(match: re.Match[str], release: str) -> str | None:
    stem = _HIP_STEM.get(match["stem"])
    if stem is None or match["so"] is None:
        return None
    if not match["version"]:
        return f"lib{stem}.so"
    if stem not in _FOLLOWS_ROCM or not _COUNTS.match(match["version"]):
        return None
    return f"lib{stem}.so.{release.split('.', maxsplit=1)[0]}"


def _report(unit: Unit, index: int, text: str, hint: str) -> Finding:
    return unit.finding(
        "library-name",
        "error",
        index,
        f"the string names the CUDA library {text}, which a HIP program cannot load",
        f"{hint}, and guard it with __HIP_PLATFORM_AMD__ where one source serves both",
        name=text,
    )
