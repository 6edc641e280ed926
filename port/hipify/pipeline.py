"""One file's way from CUDA to HIP: rules, includes, renaming, rewriting."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from port.hipify import includes, rename, rewrite
from port.hipify.findings import Finding
from port.hipify.rules import RULES

if TYPE_CHECKING:
    from port.hipify.context import Context
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

_HIP_SIGN = re.compile(rb"\bhip(?:[A-Z]|/hip_)|\b__hip_|\bHIP_")
_KERNEL_NAMES = (
    b"__global__ __device__ __shared__ __constant__ __managed__ __host__ __launch_bounds__ "
    b"threadIdx blockIdx blockDim gridDim warpSize dim3 __syncthreads"
).split()


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one file."""

    data: bytes
    status: str
    """converted, unchanged or hip-already."""
    findings: tuple[Finding, ...]
    compat: frozenset[str]
    """CUDA names whose wrappers the compat header has to carry for this file."""
    replaced: int
    """Places that were replaced."""
    lines_added: int
    """Lines put on top, with a `#line` that keeps the numbers."""


def convert(unit: Unit, context: Context) -> Result:
    """Convert one file. Never raises for what the file holds."""
    findings: list[Finding] = []
    edits: list[Edit] = []
    taken: set[int] = set()

    def collect(made: Finding | Edit) -> None:
        if isinstance(made, Finding):
            findings.append(made)
            return
        span = range(made.start, max(made.end, made.start + 1))
        if taken.isdisjoint(span):
            taken.update(span)
            edits.append(made)

    for rule in RULES:
        for made in rule(unit, context):
            collect(made)
    reported = {(each.line, each.column) for each in findings if each.severity == "error"}
    for made in includes.convert(unit, context):
        collect(made)
    for made in rename.rename(unit, context):
        if isinstance(made, Finding):
            place = (made.line, made.column)
            if place in reported or unit.line_start(made.line) + made.column - 1 in taken:
                continue
        collect(made)
    edits, lines_added = _with_headers(unit, context, edits)
    data = rewrite.apply(unit.data, edits)
    status = "converted" if data != unit.data else "unchanged"
    if status == "unchanged" and _HIP_SIGN.search(unit.data):
        status = "hip-already"
    compat = frozenset(name for edit in edits for name in edit.compat)
    return Result(data, status, tuple(sorted(set(findings))), compat, len(edits), lines_added)


def _with_headers(unit: Unit, context: Context, edits: list[Edit]) -> tuple[list[Edit], int]:
    """`edits`, and what includes the headers that the converted file needs and does not have."""
    if not unit.is_kernel_file or not _needs_runtime(unit, edits):
        return edits, 0
    if unit.path in context.runtime_files:
        return edits, 0
    edit, added = includes.insert(unit, f"<{includes.RUNTIME}>")
    return [*edits, edit], added


def _needs_runtime(unit: Unit, edits: list[Edit]) -> bool:
    return bool(edits) or any(unit.find(name) for name in _KERNEL_NAMES)
