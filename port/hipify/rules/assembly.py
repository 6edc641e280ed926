"""Inline assembly for NVIDIA GPUs: the host compiles it away, the device pass cannot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.lexer import RAW, STRING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"inline-assembly": "Inline assembly holds PTX instructions"}

_WORDS = (b"asm", b"__asm", b"__asm__")
_QUALIFIERS = frozenset((b"volatile", b"__volatile__", b"__volatile", b"goto", b"inline"))
_HOST_PROCESSORS = (b"__x86_64__", b"__aarch64__", b"__i386__", b"_M_X64", b"__arm__")
_PTX = re.compile(
    rb"\b(?:ld|st|mov|cvta?|atom|red|bar|membar|fence|cp|mma|wmma|shfl|vote|prmt|lop3|bf[ei]|setp|selp"
    rb"|mad|wgmma|tcgen05|mbarrier|griddepcontrol|nanosleep|prefetchu?|ldmatrix|stmatrix)\.|"
    rb"\b[a-z][a-z0-9]*(?:::[a-z]+)?\.[a-z][a-z0-9_:]*(?:[. \t;]|$)"
    rb"|%%?(?:laneid|warpid|nwarpid|smid|nsmid|globaltimer|clock|clock64|lanemask_\w+|n?ctaid|n?tid"
    rb"|gridid|dynamic_smem_size|total_smem_size|cluster\w*)\b|\.reg\b|\.pred\b"
)


def rule(unit: Unit, _context: Context) -> Iterator[Finding | Edit]:
    """Report every statement with PTX; in a kernel file, every one that is not empty."""
    for word in _WORDS:
        for index in unit.find(word):
            text = _template(unit, index)
            if text is None:
                continue
            code = text.replace(b"\\n", b"\n").replace(b"\\t", b" ").strip()
            if _PTX.search(code) or (unit.is_kernel_file and code and not _x86_guard(unit, index)):
                yield unit.finding(
                    "inline-assembly",
                    "error",
                    index,
                    "inline PTX assembly has no meaning on AMD GPUs",
                    "write it with HIP's builtins or guard it with "
                    "#ifndef __HIP_PLATFORM_AMD__ and give another branch",
                )


def _template(unit: Unit, index: int) -> bytes | None:
    """The joined template strings of the statement at `index`; None for what is none.

    A template that starts with a macro counts as text: its name stands for itself.
    """
    at = index + 1
    while at < len(unit.tokens) and unit.text(at) in _QUALIFIERS:
        at += 1
    if at >= len(unit.tokens) or unit.text(at) != b"(":
        return None
    parts = []
    at += 1
    while at < len(unit.tokens) and unit.text(at) not in (b":", b"::", b")", b";"):
        kind = unit.kind(at)
        text = unit.text(at)
        parts.append(text.partition(b'"')[2].rpartition(b'"')[0] if kind in (STRING, RAW) else text)
        at += 1
    return b"".join(parts)


def _x86_guard(unit: Unit, index: int) -> bool:
    """Whether the statement stands in a branch for a host processor."""
    branch = unit.branch_at(index)
    while branch is not None:
        condition = unit.slice(branch.directive.first, branch.directive.last)
        if any(name in condition for name in _HOST_PROCESSORS):
            return True
        branch = branch.parent
    return False
