"""Macros of the CUDA compiler and headers in code: versions, architectures, include guards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.rewrite import Edit
from port.hipify.rules.tokens import word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.unit import Unit

RULES = {
    "architecture-macro": "Code asks for the CUDA architecture",
    "compiler-macro": "Code asks for the CUDA compiler",
    "version-macro": "Code asks for a CUDA version",
    "include-guard": "Code asks for the include guard of a CUDA header",
}

_ARCHITECTURE = (
    b"__CUDA_ARCH__",
    b"__CUDA_ARCH_LIST__",
    b"__CUDA_ARCH_FEAT_SM90_ALL",
    b"__CUDA_ARCH_FEAT_SM100_ALL",
    b"__CUDA_ARCH_SPECIFIC__",
    b"__CUDA_ARCH_FAMILY_SPECIFIC__",
    b"__CUDA_ARCH_HAS_FEATURE__",
)
_COMPILER = (
    b"__NVCC__",
    b"__CUDACC_VER__",
    b"__CUDACC_VER_MAJOR__",
    b"__CUDACC_VER_MINOR__",
    b"__CUDACC_VER_BUILD__",
    b"__CUDACC_RTC__",
    b"__CUDACC_EXTENDED_LAMBDA__",
    b"__CUDACC_RELAXED_CONSTEXPR__",
    b"__CUDACC_DEBUG__",
    b"__NVVM__",
    b"__CUDABE__",
    b"__NVCC_DIAG_PRAGMA_SUPPORT__",
)
_VERSION = (
    b"CUDA_VERSION",
    b"CUDART_VERSION",
    b"CUDA_API_PER_THREAD_DEFAULT_STREAM",
    b"__CUDART_API_VERSION",
    b"__CUDA_API_VERSION",
    b"CUDNN_VERSION",
    b"CUDNN_MAJOR",
    b"CUDNN_MINOR",
    b"CUDNN_PATCHLEVEL",
    b"CUBLAS_VERSION",
    b"CUBLAS_VER_MAJOR",
    b"CUBLAS_VER_MINOR",
    b"CUFFT_VERSION",
    b"CUFFT_VER_MAJOR",
    b"CUSPARSE_VERSION",
    b"CUSPARSE_VER_MAJOR",
    b"CUSPARSE_VER_MINOR",
    b"CUSOLVER_VERSION",
    b"CUSOLVER_VER_MAJOR",
    b"CURAND_VERSION",
    b"CURAND_VER_MAJOR",
    b"NVML_API_VERSION",
    b"NVTX_VERSION",
    b"CUPTI_API_VERSION",
    b"CUB_VERSION",
)
_RENAMED = {b"__CUDACC__": b"__HIPCC__"}
"""clang defines `__HIPCC__` for HIP sources exactly where nvcc defines `__CUDACC__`."""

_DEVICE_PASS = b"__HIP_DEVICE_COMPILE__"
_OF_HEADERS = (b"CUDA_VERSION", b"CUDART_VERSION")
"""Asked for alone, they tell whether CUDA's headers are there; HIP's define `HIP_VERSION`."""

_GUARDS = {
    b"__CUDA_RUNTIME_H__": b"HIP_INCLUDE_HIP_HIP_RUNTIME_H",
    b"__CUDA_RUNTIME_API_H__": b"HIP_INCLUDE_HIP_HIP_RUNTIME_API_H",
    b"__cuda_cuda_h__": b"HIP_INCLUDE_HIP_HIP_RUNTIME_API_H",
    b"__CUDA_H__": b"HIP_INCLUDE_HIP_HIP_RUNTIME_API_H",
    b"__DRIVER_TYPES_H__": b"HIP_INCLUDE_HIP_DRIVER_TYPES_H",
    b"__VECTOR_TYPES_H__": b"HIP_INCLUDE_HIP_HIP_VECTOR_TYPES_H",
    b"__LIBRARY_TYPES_H__": b"HIP_INCLUDE_HIP_LIBRARY_TYPES_H",
    b"__CUDA_FP16_H__": b"HIP_INCLUDE_HIP_HIP_FP16_H",
    b"CUBLAS_H_": b"HIPBLAS_H",
    b"CUBLAS_API_H_": b"HIPBLAS_H",
    b"CUBLAS_V2_H_": b"HIPBLAS_H",
    b"CURAND_H_": b"HIPRAND_H_",
    b"_CUFFT_H_": b"HIPFFT_H_",
    b"CUSPARSE_H_": b"HIPSPARSE_H",
}
"""Guard of a CUDA header and of the HIP header that takes its place."""

_OTHER_GUARDS = (
    b"__CUDA_BF16_H__",
    b"__CUDA_FP8_H__",
    b"__DEVICE_FUNCTIONS_H__",
    b"__DEVICE_TYPES_H__",
    b"__HOST_DEFINES_H__",
    b"__VECTOR_FUNCTIONS_H__",
    b"__BUILTIN_TYPES_H__",
    b"__CHANNEL_DESCRIPTOR_H__",
    b"__NVRTC_H__",
    b"__nvml_nvml_h__",
    b"CUBLASAPI",
    b"CUSOLVER_COMMON_H_",
    b"CUSOLVERDN_H_",
    b"CUDNN_H_",
    b"_COOPERATIVE_GROUPS_H_",
    b"NVTOOLSEXT_H_",
    b"CUCOMPLEX_H_",
)

_RULE_OF = {
    **dict.fromkeys(_ARCHITECTURE, "architecture-macro"),
    **dict.fromkeys((*_COMPILER, *_RENAMED), "compiler-macro"),
}
"""Rule of each macro that may stay where the project has an arm of its own for HIP."""


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Rename what HIP has an equal for; report every other place."""
    yield from _left(unit)
    yield from _architecture(unit)
    for old, new in _RENAMED.items():
        for index in _places(unit, old):
            yield _replaced(unit, index, new)
    for name in _COMPILER:
        for index in _places(unit, name):
            yield unit.finding(
                "compiler-macro",
                "error",
                index,
                f"{name.decode()} is not defined when HIP is compiled; the other branch is taken",
                "ask for __HIPCC__ (HIP code) or __HIP_DEVICE_COMPILE__ (device pass) as well",
            )
    for name in _VERSION:
        of_headers = name in _OF_HEADERS and name not in context.project.defined
        for index in _places(unit, name):
            if of_headers and _asks_alone(unit, index):
                yield _replaced(unit, index, b"HIP_VERSION")
                continue
            yield unit.finding(
                "version-macro",
                "error",
                index,
                _version_message(name, context),
                "ask for the feature, or for HIP_VERSION on the HIP side; no CUDA version stands "
                "for a HIP version",
            )
    yield from _guards(unit, context)


def _left(unit: Unit) -> Iterator[Finding]:
    """A note of each macro that stays, as it leads to the project's own arm for HIP."""
    for index in sorted(unit.ahead_of_hip):
        rule = _RULE_OF.get(unit.text(index))
        if rule is not None:
            yield unit.finding(
                rule,
                "note",
                index,
                f"{word(unit, index)} stays: HIP does not define it, and takes the arm behind it "
                "that the project has for HIP",
                "give HIP this arm by a name of its own, if it is the one that is meant",
            )


def _version_message(name: bytes, context: Context) -> str:
    text = name.decode()
    if name in context.project.defined:
        return f"{text} is not HIP's: what the tree defines it as is a version of CUDA's"
    said = f"{text} is not defined when HIP is compiled: it counts as 0 in #if and "
    stands = context.mapping.stand_in(text) is not None
    return said + ("0 stands for it in code" if stands else "fails to compile elsewhere")


def _architecture(unit: Unit) -> Iterator[Finding | Edit]:
    for name in _ARCHITECTURE:
        for index in _places(unit, name):
            if name == b"__CUDA_ARCH__" and _asks_alone(unit, index):
                yield _replaced(unit, index, _DEVICE_PASS)
                continue
            yield unit.finding(
                "architecture-macro",
                "error",
                index,
                f"{word(unit, index)} is a CUDA architecture; it is not defined on HIP, where "
                "this branch is never taken",
                "ask for __HIP_DEVICE_COMPILE__ (device pass) or a target such as __gfx90a__, and "
                "give HIP the branch with the feature it has",
            )


def _asks_alone(unit: Unit, index: int) -> bool:
    """Whether the macro is only asked for: `#ifdef M`, `#ifndef M` and `defined(M)`.

    They count when the same line compares it with nothing.
    """
    if not _is_asked(unit, index):
        return False
    line = unit.directive_at(index)
    if line is None:
        return False
    others = (at for at in unit.find(unit.text(index)) if line.first <= at < line.last)
    return all(_is_asked(unit, at) for at in others)


def _is_asked(unit: Unit, index: int) -> bool:
    before = unit.text(index - 1)
    if before == b"(":
        before = unit.text(index - 2)
    return before in (b"ifdef", b"ifndef", b"elifdef", b"elifndef", b"defined")


def _guards(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    for old, new in _GUARDS.items():
        for index in _places(unit, old):
            if context.hip.kind(new.decode("utf-8", "replace")) == "macro":
                yield _replaced(unit, index, new)
            else:
                yield _guard_finding(unit, index)
    for name in _OTHER_GUARDS:
        for index in _places(unit, name):
            yield _guard_finding(unit, index)


def _guard_finding(unit: Unit, index: int) -> Finding:
    return unit.finding(
        "include-guard",
        "error",
        index,
        f"{word(unit, index)} is the include guard of a CUDA header; HIP's headers do not "
        "define it, so the guarded code vanishes",
        "ask for __HIP_PLATFORM_AMD__ as well, or include the header instead of asking",
    )


def _places(unit: Unit, name: bytes) -> Iterator[int]:
    """Uses of a macro; its own #define or #undef is none, nor what leads to an arm for HIP."""
    for index in unit.find(name):
        stays = name in _RULE_OF and index in unit.ahead_of_hip
        if not stays and unit.text(index - 1) not in (b"define", b"undef"):
            yield index


def _replaced(unit: Unit, index: int, new: bytes) -> Edit:
    token = unit.tokens[index]
    return Edit(token.start, token.end, new)
