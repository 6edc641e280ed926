"""Counts over one conversion: names, residue, what is not reported, what headers lack."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from names import code_only, cuda_names, source_lines
from tools import SUFFIXES

from port.hipify.tables import load_cuda, load_hip

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tools import Run

_CUDA = re.compile(
    r"_{0,2}cuda[A-Z]\w*|cu[A-Z]\w*|CU[A-Z_a-z]\w*|nv(?:rtc|ml|tx|jpeg|JitLink)\w*|__nv_\w*|NV\w+_\w*"
    r"|cu(?:blas|rand|sparse|fft|solver|dnn|file|pti)\w*|PFN_cu\w*|nv_bfloat\w*"
)
_HIP = re.compile(rb"\b(?:hip|HIP_|hiprtc|HIPRTC_|hipblas|HIPBLAS_|roctx|rocblas_)[A-Za-z]\w*")
_NAMESPACES = (b"hipcub",)  # of HIP's headers; the tables hold no namespaces


@cache
def declared() -> frozenset[str]:
    """Names of CUDA's headers that no other library would spell so."""
    return frozenset(name for name in load_cuda() if _CUDA.fullmatch(name))


def names_in(top: Path, files: Iterable[str] | None = None) -> int:
    """CUDA names in the code below `top`, or in `files` of it."""
    paths = top.rglob("*") if files is None else (top / name for name in files)
    return sum(
        1
        for path in paths
        if path.is_file() and path.suffix in SUFFIXES
        for _ in cuda_names(path.read_bytes(), declared())
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """`residue`: CUDA names left in code; `unreported`: those with no report at their line;
    `undeclared`: HIP names emitted that neither HIP's headers nor the project declare.
    """

    residue: int
    unreported: int
    undeclared: int


def count(top: Path, run: Run, release: str) -> Counts:
    """Count over the outputs of one run. A name that the project declares itself is no residue."""
    residue = unreported = undeclared = 0
    hip = load_hip(release)
    project = b"\n".join(
        path.read_bytes() for path in top.rglob("*") if path.is_file() and path.suffix in SUFFIXES
    )
    known = {*_HIP.findall(project), *_NAMESPACES}
    compat = run.top / "port_hip_compat.h"
    if compat.exists():
        known |= set(_HIP.findall(compat.read_bytes()))
    for relative, path in run.outputs.items():
        if path.suffix not in SUFFIXES | {".hip"} or not path.is_file():
            continue
        data = path.read_bytes()
        lines = source_lines(data)
        for line, name in cuda_names(data, declared()):
            if (relative, name) in run.own:
                continue
            residue += 1
            unreported += (relative, lines[line - 1]) not in run.told
        for name in set(_HIP.findall(code_only(data))) - known:
            undeclared += name.decode() not in hip
    return Counts(residue, unreported, undeclared)
