"""What is known of one ELF file: made in the limited child, carried as JSON, judged by checks."""

from __future__ import annotations

from typing import Any, NamedTuple


class DeviceSection(NamedTuple):
    """One section of device code: its place in the file (bytes), hash and architectures."""

    name: str
    offset: int
    address: int
    size: int
    align: int
    sha256: str
    architectures: tuple[str, ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]


class Undefined(NamedTuple):
    """A symbol that has to come from elsewhere; `file` and `version` where it is bound to one."""

    name: str
    weak: bool
    version: str | None
    file: str | None


class Elf(NamedTuple):
    """One ELF file. `rpath` and `runpath` are None where the tag is absent; `stack` is whether
    PT_GNU_STACK asks for an executable stack, None where there is no such header.
    """

    machine: str
    bits: int
    kind: str
    interpreter: bool
    needed: tuple[str, ...]
    soname: str | None
    rpath: str | None
    runpath: str | None
    version_needs: dict[str, tuple[str, ...]]
    undefined: tuple[Undefined, ...]
    exported: dict[str, bool]
    """Names this file defines for others, and whether each is weak."""
    stack: bool | None
    text_relocations: bool
    is_global: bool
    """Marked DF_1_GLOBAL: opened as if with RTLD_GLOBAL."""
    static_cudart: tuple[str, ...]
    """Markers of the static CUDA runtime that were found."""
    device: tuple[DeviceSection, ...]
    registers: tuple[str, ...]
    """GPU platforms whose device code this file registers when it is loaded."""
    wrapper_problems: tuple[str, ...]
    standin: bool

    @property
    def is_library(self) -> bool:
        """True for what a loader maps into a process of others (not for a program)."""
        return self.kind == "ET_DYN" and not self.interpreter

    @property
    def is_host(self) -> bool:
        """False for files that hold device code alone."""
        return self.machine not in DEVICE_MACHINES

    @property
    def is_extension(self) -> bool:
        return any(name.startswith("PyInit_") for name in self.exported)


CUDART_MARKERS = ("cudart.shm", "cudaErrorCudartUnloading")
"""Texts inside the static CUDA runtime that survive stripping (seen in CUDA 12 and 13)."""

DEVICE_MACHINES = {"EM_CUDA": "cuda", "EM_AMDGPU": "rocm"}


def to_json(elf: Elf) -> dict[str, Any]:
    """`elf` as plain values."""
    return elf._asdict()


def from_json(values: dict[str, Any]) -> Elf:
    """The inverse of `to_json`."""
    values["undefined"] = tuple(Undefined(*item) for item in values["undefined"])
    values["device"] = tuple(
        DeviceSection._make(tuple(value) if isinstance(value, list) else value for value in section)
        for section in values["device"]
    )
    values["version_needs"] = {k: tuple(v) for k, v in values["version_needs"].items()}
    for key in ("needed", "static_cudart", "registers", "wrapper_problems"):
        values[key] = tuple(values[key])
    return Elf(**values)
