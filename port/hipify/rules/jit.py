"""The run-time compiler: options that name CUDA architectures, kernels kept as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.lexer import RAW, STRING
from port.hipify.rules.tokens import of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {
    "jit-option": "An option of the run-time compiler is NVIDIA's",
    "jit-source": "Kernel text in a string is not converted",
}

_ARCHITECTURE = re.compile(
    rb"(?:^|[\s\"=])-{1,2}(?:gpu-architecture|gpu-code|arch|code|gencode)\b"
    rb"|(?:^|[^A-Za-z0-9_])(?:compute|sm|lto)_[0-9{%]|(?:compute|sm)_$"
)
_WHOLE_OPTION = re.compile(rb'^"-{1,2}(?:gpu-architecture|arch)[= ]?(?:compute|sm)_\w*"$')
_OPTION = re.compile(
    rb'^"-{1,2}(?:use_fast_math|maxrregcount|fmad|ftz|prec-sqrt|prec-div|device-debug|dopt|ptxas-options'
    rb"|relocatable-device-code|rdc|extra-device-vectorization|generate-line-info|lineinfo|dlto"
    rb"|default-device|device-as-default-execution-space|restrict|split-compile|extensible-whole-program"
    rb"|dlink-time-opt|gen-opt-lto|G|dc|ewp|optix-ir|brief-diagnostics|device-int128|jump-table-density|minimal)\b"
)
_KERNEL_TEXT = re.compile(rb"__global__|__device__|__shared__|threadIdx|blockIdx|__launch_bounds__")
_NOT_PORTABLE = re.compile(
    rb"\b(?P<name>__(?:shfl|ballot|any|all|match_any|match_all|reduce)\w*_sync|__activemask"
    rb"|__CUDA_ARCH__|asm|cuda::\w+|nvcuda::\w+|__nv_bfloat16\w*|__ldcg|__ldca)"
    rb"|#[ \t]*include[ \t]*[<\"](?P<header>cuda\S*|cub/\S*|cu\S*\.h|mma\.h|nv/\S*)[>\"]"
)


def rule(unit: Unit, _context: Context) -> Iterator[Finding | Edit]:
    """Report options in a file that names the run-time compiler, and kernel text anywhere."""
    compiles = any(name.startswith((b"nvrtc", b"NVRTC")) for name in unit.names)
    for index in (*of_kind(unit, STRING), *of_kind(unit, RAW)):
        kind = unit.kind(index)
        token = unit.tokens[index]
        text = unit.data[token.start : token.end]
        told = compiles and (_ARCHITECTURE.search(text) or _OPTION.match(text))
        if kind == STRING and (told or _WHOLE_OPTION.match(text)):
            yield _option(unit, index, text)
            continue
        if _KERNEL_TEXT.search(text) and (kind == RAW or b"__global__" in text):
            yield from _kernel(unit, index, text)


def _option(unit: Unit, index: int, text: bytes) -> Finding:
    shown = text.decode("latin-1").strip('"')
    return unit.finding(
        "jit-option",
        "error",
        index,
        f"hipRTC does not take the option or architecture {shown!r} of NVRTC",
        "give --offload-arch=gfx… (hipDeviceProp_t::gcnArchName names the device's) and clang's "
        "options instead",
        name=shown,
    )


def _kernel(unit: Unit, index: int, text: bytes) -> Iterator[Finding]:
    start = unit.tokens.starts[index]
    yield unit.finding(
        "jit-source",
        "warning",
        index,
        "the string holds kernel text; strings are not converted",
        "hipRTC takes plain kernels as they are; check warp width, headers and assembly in it",
        name=text.partition(b"\n")[0].decode("latin-1"),
    )
    for match in _NOT_PORTABLE.finditer(text):
        name = (match["name"] or match["header"]).decode("latin-1")
        yield unit.finding_at(
            "jit-source",
            "warning",
            start + match.start(),
            name,
            f"kernel text names {name}, which hipRTC takes in another form or not at all",
            "convert this text by hand, or keep one text for each platform",
        )
