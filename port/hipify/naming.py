"""The plain renaming rule: the HIP names that a CUDA name may have, likeliest first.

A candidate is only a guess; `port.hipify.mapping` takes it when the HIP headers declare it. A
candidate that is a `Key` stands for any spelling with these letters, capitals and underscores
apart: HIP spells CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID as hipDeviceAttributePciDomainID in one release
and with Id in another.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Library prefixes whose names differ by the prefix alone.
_LIBRARIES = (
    ("cublasLt", "hipblasLt"),
    ("CUBLASLT", "HIPBLASLT"),
    ("cublas", "hipblas"),
    ("CUBLAS", "HIPBLAS"),
    ("curand", "hiprand"),
    ("CURAND", "HIPRAND"),
    ("cufft", "hipfft"),
    ("CUFFT", "HIPFFT"),
    ("cusparse", "hipsparse"),
    ("CUSPARSE", "HIPSPARSE"),
    ("cusolver", "hipsolver"),
    ("CUSOLVER", "HIPSOLVER"),
    ("nvrtc", "hiprtc"),
    ("NVRTC", "HIPRTC"),
    ("nvtx", "roctx"),
    ("__nv_", "__hip_"),
    ("nv_", "__hip_"),
    ("make_cuda", "make_hip"),
    ("make_cu", "make_hip"),
    ("CUDART_", "HIP_"),
    ("CUDA_R_", "HIP_R_"),
    ("CUDA_C_", "HIP_C_"),
)
# A structure or enumeration of CUDA's driver is named by its tag, too; HIP has one name.
_TAG_SUFFIX = re.compile(r"_(st|enum)$")
_VERSION_SUFFIX = re.compile(r"(_v\d+)?(_ptsz|_ptds)?$")


class Key(str):
    """A name in lower case without underscores."""

    __slots__ = ()


def key(name: str) -> Key:
    """`name` as a `Key`."""
    return Key(name.replace("_", "").lower())


def base_name(name: str) -> str:
    """`name` without the version and stream suffixes of the driver's entry points."""
    return _VERSION_SUFFIX.sub("", name)


def candidates(name: str) -> Iterator[str]:
    """Names and keys to look for, likeliest first."""
    yield name
    for old, new in _LIBRARIES:
        if name.startswith(old):
            renamed = new + name[len(old) :]
            base = base_name(renamed)
            yield base
            wide = "_64" if base.endswith("_64") else ""
            yield f"{base.removesuffix('_64')}_v2{wide}"
            yield key(renamed)
            return
    yield from _core(name)


def _core(name: str) -> Iterator[str]:
    """The runtime's and the driver's names."""
    base = base_name(name)
    if base != name:
        yield from _core_exact(name)
    yield from _core_exact(base)
    tag = _TAG_SUFFIX.sub("", base)
    if tag != base:
        yield from _core_exact(tag)


def _core_exact(name: str) -> Iterator[str]:
    if match := re.match(r"cuda([A-Z]\w*)", name):
        rest = match[1]
        yield f"hip{rest}"
        if rest.startswith("DevAttr"):
            rest = "DeviceAttribute" + rest.removeprefix("DevAttr")
        yield key(f"hip{rest}")
        yield key(f"hip{rest}t")
    elif match := re.match(r"cu([A-Z]\w*)", name):
        yield f"hipDrv{match[1]}"
        yield f"hip{match[1]}"
    elif match := re.match(r"CUDA_ERROR_(\w+)", name):
        yield key(f"hipError{match[1]}")
    elif match := re.match(r"CUDA_(\w+)", name):
        yield f"HIP_{match[1]}"
        yield key(f"hip{match[1]}")
        yield key(f"hip{match[1]}t")
    elif match := re.match(r"CU_(\w+)", name):
        yield f"HIP_{match[1]}"
        yield key(f"hip{match[1]}")
        if match[1].startswith("JIT_"):
            yield key(f"hipJitOption{match[1].removeprefix('JIT_')}")
            yield f"HIPRTC_{match[1]}"
    elif match := re.match(r"CU([a-z]\w*)", name):
        yield key(f"hip{match[1]}t")
        yield key(f"hip{match[1]}")
