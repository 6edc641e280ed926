"""Macros that build API names: pasted from pieces, or spelled as text around `#`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.calls import calls
from port.hipify.lexer import IDENT, STRING
from port.hipify.rules.tokens import literal, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.preprocess import Macro
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {
    "pasted-name": "A macro pastes the name of a CUDA declaration together",
    "spelled-name": "A macro spells the name of a CUDA function as text",
}

_START = re.compile(
    r"^(?:cu|cuda|CU_?|CUDA_?|CUDA_ERROR_?|cudaError_?|CU_DEVICE_ATTRIBUTE_?|cudaDevAttr_?|nvrtc"
    r"|NVRTC_?|nvml|NVML_?|cublas|CUBLAS_?|curand|CURAND_?|cufft|CUFFT_?|cusparse|CUSPARSE_?"
    r"|cusolver|CUSOLVER_?|cudnn|CUDNN_?|nvtx|PFN_cu|PFN_cuda)$"
)
_SPELLED = re.compile(r"^(?:cu|cuda|nvrtc|nvml|cublas|curand|cufft|cusparse|cusolver|cudnn|nvtx)"
                      r"(?:[A-Z]\w*)?$")  # fmt: skip


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Report each piece of a CUDA name beside `##`, and each start of one beside `#`."""
    pasting = set()
    for macro in unit.macros:
        for index in macro.body:
            text = unit.text(index)
            if text == b"##":
                pasting.add(macro.name)
                yield from _pieces(unit, context, macro, index)
            elif unit.kind(index) == STRING and unit.text(index + 1) == b"#":
                yield from _spelled(unit, index)
    for name in pasting:
        yield from _arguments(unit, name)


def _pieces(unit: Unit, context: Context, macro: Macro, hashes: int) -> Iterator[Finding]:
    for at in (hashes - 1, hashes + 1):
        name = word(unit, at)
        if unit.kind(at) != IDENT or unit.text(at) in (macro.parameters or ()):
            continue
        whole = at < hashes and context.mapping.lookup(name) is not None
        if whole or _START.match(name):
            yield unit.finding(
                "pasted-name",
                "error",
                at,
                f"{name} is pasted to a longer name with ##; the whole name is not seen here and "
                "stays CUDA's",
                "write the names out, or paste them from hip under __HIP_PLATFORM_AMD__",
            )


def _spelled(unit: Unit, index: int) -> Iterator[Finding]:
    text = literal(unit, index)
    if text is not None and _SPELLED.match(text):
        yield unit.finding(
            "spelled-name",
            "error",
            index,
            f'the macro spells a CUDA name as text, starting with "{text}"',
            'spell the whole HIP name, or start with "hip" under __HIP_PLATFORM_AMD__',
            name=text,
        )


def _arguments(unit: Unit, name: bytes) -> Iterator[Finding]:
    """Pieces given to a macro of this file that pastes its parameters."""
    for call in calls(unit, name):
        for argument in call.arguments:
            if len(argument) != 1 or not _START.match(word(unit, argument[0])):
                continue
            piece = word(unit, argument[0])
            yield unit.finding(
                "pasted-name",
                "error",
                argument[0],
                f"{piece} is given to the macro {name.decode('utf-8', 'replace')}, which pastes it "
                "to a longer name that stays CUDA's",
                "write the names out, or give hip under __HIP_PLATFORM_AMD__",
            )
