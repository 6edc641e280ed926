"""Reading of names: libraries, labels of GPU runtimes, platforms in distribution names."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPECIAL = re.compile(r"[*?\[]")
_HASH = re.compile(r"-[0-9a-f]{4,}$")
_RUNTIME_OF = {"cu": "cuda", "cuda": "cuda", "rocm": "rocm", "hip": "rocm"}
_LABEL = re.compile(
    r"(?<![a-z])(?P<kind>cuda|cu|rocm|hip)[-_]?(?P<number>\d+(?:[._-]\d+)*)x?(?![a-z])"
)
_WORD = re.compile(r"^(?:cuda|cu|rocm|hip)\d*x?$")

# Libraries whose soname carries the major of the toolkit they belong to.
_CUDA_MAJOR = re.compile(r"lib(?:cudart|cublas|cublasLt|nvrtc|nvJitLink)\.so\.(\d+)")
_ROCM_MAJOR = re.compile(r"libamdhip64\.so\.(\d+)")


def library_base(path: str) -> str:
    """The base name of a shared library: no folder, no `.so…`, no hash of a repair tool.

    >>> library_base("pkg.libs/libcuda-ab12cd34.so.1")
    'libcuda'
    """
    return _HASH.sub("", path.rpartition("/")[2].partition(".so")[0])


def is_shared_name(path: str) -> bool:
    """Whether a path is named like a shared object."""
    return re.search(r"\.so(\.\d+)*$", path) is not None


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether `name` matches one of the shell patterns, by case."""
    return any(_matches(name, pattern) for pattern in patterns)


def _matches(name: str, pattern: str) -> bool:
    # Most patterns are a name or the beginning of one; the others take a regular expression each.
    start = pattern.removesuffix("*")
    if _SPECIAL.search(start):
        return fnmatchcase(name, pattern)
    return name.startswith(start) if start is not pattern else name == pattern


def runtime_major(library: str) -> tuple[str, int] | None:
    """Platform and toolkit major that a runtime library's name tells, or None.

    >>> runtime_major("libamdhip64.so.7")
    ('rocm', 7)
    """
    for platform, pattern in (("cuda", _CUDA_MAJOR), ("rocm", _ROCM_MAJOR)):
        found = pattern.match(library)
        if found:
            return platform, int(found.group(1))
    return None


def labels(text: str) -> list[tuple[str, str]]:
    """Runtime labels in a name or a local version: platform and the number as spelled.

    >>> labels("1.0+rocm6.4"), labels("jax-cuda12-plugin")
    ([('rocm', '6.4')], [('cuda', '12')])
    """
    return [(_RUNTIME_OF[m["kind"]], m["number"]) for m in _LABEL.finditer(text.lower())]


def majors(platform: str, number: str) -> set[int]:
    """Toolkit majors that a label's number can stand for.

    With a separator the first part is the major. A run of digits is a major followed by a minor of
    one or two digits, or a major alone where such a toolkit can exist (majors 5 to 20).

    >>> majors("rocm", "7.12"), majors("cuda", "126"), majors("rocm", "82")
    ({7}, {12}, {8})
    """
    parts = re.split(r"[._-]", number)
    if len(parts) > 1 or len(number) == 1:
        return {int(parts[0])}
    readings = {int(number[:-1])}
    if len(number) > 2:
        readings.add(int(number[:-2]))
    if int(number) <= 20:
        readings.add(int(number))
    least = 9 if platform == "cuda" else 4
    return {major for major in readings if least <= major <= 20} or {int(number)}


def platform_in_name(distribution: str) -> str | None:
    """The platform that a distribution's name states, or None.

    >>> platform_in_name("cupy-cuda12x"), platform_in_name("numpy")
    ('cuda', None)
    """
    found = {
        _RUNTIME_OF[re.sub(r"\d*x?$", "", word)] if _WORD.match(word) else word
        for word in re.split(r"[-_.]+", distribution.lower())
        if _WORD.match(word) or word == "cpu"
    }
    return found.pop() if len(found) == 1 else None


# Libraries of each vendor's toolkit, by base name.
FAMILIES: dict[str, tuple[str, ...]] = {
    "cuda": (
        "libcuda", "libcudart", "libcublas*", "libcudnn*", "libcufft*", "libcurand", "libcusolver*",
        "libcusparse*", "libcufile*", "libcupti", "libcutensor*", "libnccl", "libnv*",
    ),
    "rocm": (
        "libamdhip64", "libhsa-runtime64", "libhsakmt", "libamd_comgr*", "libamd_smi",
        "librocm_smi64", "librocm-core", "librocm_*", "librocprof*", "libroctx64", "libroctracer64",
        "librocblas", "librocsolver", "librocsparse", "librocfft", "librocrand", "librocalution*",
        "libhipblas*", "libhipsolver*", "libhipsparse*", "libhipfft*", "libhiprand", "libhiprtc*",
        "libhipdnn*", "libhiptensor*", "libMIOpen", "librccl",
    ),
}  # fmt: skip
# Parts of the NVIDIA driver: they come with the kernel module, never with a wheel.
_DRIVER = ("libcuda", "libnvidia-*", "libnvcuvid")


def family(library: str) -> str | None:
    """The GPU platform whose toolkit or driver a library belongs to, or None."""
    base = library_base(library)
    return next((name for name, bases in FAMILIES.items() if matches(base, bases)), None)


def is_driver(library: str) -> bool:
    """Whether a library is part of the NVIDIA driver."""
    return matches(library_base(library), _DRIVER)
