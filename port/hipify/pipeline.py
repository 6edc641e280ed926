"""One file's way from CUDA to HIP: rules, includes, renaming, rewriting."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from port.hipify import compat_header, includes, placement, rename, rewrite
from port.hipify.conditions import Conditions
from port.hipify.findings import Finding
from port.hipify.rules import RULES
from port.hipify.unit import FRAGMENT_SUFFIXES

if TYPE_CHECKING:
    from port.hipify.context import Context
    from port.hipify.preprocess import Branch
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

_HIP_SIGN = re.compile(rb"\bhip(?:[A-Z]|/hip_)|\b__hip_|\bHIP_")
_KERNEL_NAMES = (
    b"__global__ __device__ __shared__ __constant__ __managed__ __host__ __launch_bounds__ "
    b"threadIdx blockIdx blockDim gridDim warpSize dim3 __syncthreads"
).split()
_HALVES = "hip/hip_fp16.h"
_HALF_NAMES = (b"__half", b"__half2", b"half2")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one file."""

    data: bytes
    status: str
    """converted, unchanged or hip-already."""
    findings: tuple[Finding, ...]
    carried: frozenset[str]
    """CUDA names whose wrappers the compat header has to carry for this file."""
    replaced: int
    """Places that were replaced."""
    lines_added: int
    """Lines put on top, with a `#line` that keeps the numbers."""


def convert(unit: Unit, context: Context) -> Result:
    """Convert one file. Never raises for what the file holds."""
    findings: list[Finding] = []
    edits: list[Edit] = []
    taken = rewrite.Taken()

    def collect(made: Finding | Edit) -> None:
        if isinstance(made, Finding):
            findings.append(made)
        elif taken.take(made):
            edits.append(made)

    if unit.data.startswith((b"\xff\xfe", b"\xfe\xff")):
        findings.append(_encoding(unit))
    conditions = Conditions(unit, context.release, context.options.defines)
    for rule in RULES:
        for made in rule(unit, context):
            collect(made)
    reported = {(each.line, each.column) for each in findings if each.severity == "error"}
    for made in chain(includes.convert(unit, context), rename.rename(unit, context, conditions)):
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
    carried = frozenset(name for edit in edits for name in edit.compat)
    return Result(
        data,
        status,
        tuple(sorted(_settled(unit, conditions, findings))),
        carried,
        len(edits),
        lines_added,
    )


def _encoding(unit: Unit) -> Finding:
    return unit.finding_at(
        "source-encoding",
        "error",
        0,
        unit.path.rsplit("/", 1)[-1],
        "the file is UTF-16, which neither compilers nor this tool read as source",
        "save it as UTF-8",
    )


def _settled(unit: Unit, conditions: Conditions, findings: list[Finding]) -> set[Finding]:
    """`findings` without repetitions; those in code that no HIP build compiles become notes."""
    if not unit.branches:
        return set(findings)
    starts = unit.tokens.starts
    settled = set()
    for each in findings:
        if each.line and each.severity != "note":
            offset = unit.line_start(each.line) + each.column - 1
            index = max(bisect_right(starts, offset) - 1, 0)
            if conditions.release_at(index) is None:
                message = f"{each.message} (in code that no HIP build compiles)"
                settled.add(replace(each, severity="note", message=message))
                continue
        settled.add(each)
    return settled


def _with_headers(unit: Unit, context: Context, edits: list[Edit]) -> tuple[list[Edit], int]:
    """`edits`, and what includes the headers that the converted file needs and does not have."""
    lines = 0
    if _needs_compat(unit, context, edits):
        edits, lines = _with_compat(unit, edits)
    bringing = _that_brought_halves(unit, edits)
    if bringing is not None:
        header = f"<{_HALVES}>"
        place = placement.after_include(unit, bringing.start, header)
        edits, added = _beside(unit, edits, place, header)
        lines += added
    if _needs_runtime(unit, context, edits):
        header = f"<{includes.RUNTIME}>"
        edits, added = _beside(unit, edits, placement.ahead_of_code(unit, header), header)
        lines += added
    return edits, lines


def _that_brought_halves(unit: Unit, edits: list[Edit]) -> Edit | None:
    """The include of cuBLAS, where the file counts on it for `__half`: hipBLAS has none."""
    if unit.path.endswith(".c") or not any(unit.find(name) for name in _HALF_NAMES):
        return None
    if any(include.path.endswith("_fp16.h") for include in unit.includes):
        return None
    found = [edit for edit in edits if edit.header.endswith("hipblas.h")]
    return min(found) if found else None


def _needs_runtime(unit: Unit, context: Context, edits: list[Edit]) -> bool:
    """Whether this is a kernel file that counts on nvcc to include the runtime header."""
    if not unit.is_kernel_file or unit.path in context.runtime_files:
        return False
    return bool(edits) or any(unit.find(name) for name in _KERNEL_NAMES)


def _needs_compat(unit: Unit, context: Context, edits: list[Edit]) -> bool:
    if unit.path.endswith(FRAGMENT_SUFFIXES):
        return False
    if any(edit.compat for edit in edits):
        return True
    lookup = context.mapping.lookup
    names = context.fragments.get(unit.path, ())
    return any(entry.how == "compat" for name in names if (entry := lookup(name)) is not None)


def _with_compat(unit: Unit, edits: list[Edit]) -> tuple[list[Edit], int]:
    """Include the compat header: in place of the HIP API's, else beside a vendor include."""
    header = f'"{"../" * unit.path.count("/")}{compat_header.HEADER}"'
    vendors = _that_reach(unit, edits)
    for edit in vendors:
        if edit.header == includes.RUNTIME_API or (
            not unit.is_kernel_file and unit.data[edit.start + 1 : edit.end - 1] == b"cuda.h"
        ):
            made = replace(edit, text=header.encode("utf-8", "surrogateescape"))
            return [made if each is edit else each for each in edits], 0
    if vendors:
        place = placement.after_include(unit, min(vendors).start, header)
    else:
        place = placement.ahead_of_code(unit, header)
    return _beside(unit, edits, place, header)


def _that_reach(unit: Unit, edits: list[Edit]) -> list[Edit]:
    """The edits of includes, but for those in an arm around which the compat header is needed."""
    starts = unit.tokens.starts

    def arm(edit: Edit) -> Branch | None:
        return unit.branch_at(max(bisect_right(starts, edit.start) - 1, 0))

    users = {arm(edit) for edit in edits if edit.compat}
    found = []
    for edit in edits:
        around = arm(edit) if edit.header else None
        reaches = bool(edit.header)
        while around is not None and reaches:
            around = around.parent
            reaches = around not in users
        if reaches:
            found.append(edit)
    return found


def _beside(
    unit: Unit, edits: list[Edit], place: tuple[Edit, int], header: str
) -> tuple[list[Edit], int]:
    """`edits` with the include of `header` at `place`, and the lines that it adds.

    Where another include was put there already, this one becomes the first line.
    """
    insertion, added = place
    if not added and any(each.start == each.end == insertion.start for each in edits):
        insertion, added = placement.on_top(unit, header)
        return [insertion, *edits], added
    return [insertion, *edits], added
