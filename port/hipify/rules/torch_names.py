"""torch's C++ interface: one rule for its headers and its names.

torch's ROCm builds keep the CUDA spelling of every C++ name (`at::cuda`, `c10::cuda`,
`getCurrentCUDAStream`, `C10_CUDA_CHECK`) and ship the headers under HIP's spelling: a folder
`cuda` becomes `hip` and a leading `CUDA` of the file becomes `HIP`. So names stay and headers
move, always both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.rewrite import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.unit import Unit

RULES: dict[str, str] = {}

_HEADER = re.compile(
    rb"^(?P<open>[<\"])(?P<top>c10|ATen)/(?:(?P<native>native/)?)cuda/(?P<inner>(?:\w+/)*)"
    rb"(?:CUDA)?(?P<file>[\w.]+)(?P<close>[>\"])$"
)
_PREFIX = re.compile(rb"/(?:CUDA)(?=[A-Z]\w*\.\w+[>\"]$)")


def rule(unit: Unit, _context: Context) -> Iterator[Finding | Edit]:
    """Move the includes of torch's CUDA headers."""
    for include in unit.includes:
        text = unit.data[include.start : include.end]
        if not _HEADER.match(text):
            continue
        moved = _PREFIX.sub(b"/HIP", text).replace(b"/cuda/", b"/hip/", 1)
        moved = moved.replace(b"/cuda_cmake_macros.h", b"/hip_cmake_macros.h")
        yield Edit(include.start, include.end, moved)
