"""Architectures in CUDA fat binaries, from their headers alone (also where the code is packed).

Layout, seen in the output of nvcc 13.0: a container is `u32 0xBA55ED50, u16 version, u16 header
size, u64 payload size`; its entries are `u16 kind, u16 version, u32 header size, u64 payload size,
u32 packed size, u32 options, u16 minor, u16 major, u32 architecture, u32 name offset, u32 name
size, u64 flags`. A section holds containers one behind the other, each aligned to 8 bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    # read(offset, size) inside the section; shorter at its end
    Read = Callable[[int, int], bytes]

CONTAINER_MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_KINDS = {1: "compute", 2: "sm", 8: "lto"}
_SPECIFIC, _FAMILY = 0x100000, 0x200000


class DeviceCode:
    """What a device code section holds: architectures in order of appearance, and what is odd."""

    __slots__ = ("architectures", "notes", "problems")

    def __init__(self) -> None:
        self.architectures: list[str] = []
        self.notes: list[str] = []
        self.problems: list[str] = []

    def add(self, architecture: str) -> None:
        if architecture not in self.architectures:
            self.architectures.append(architecture)


def read_fatbin(read: Read, size: int) -> DeviceCode:
    """Read the `.nv_fatbin` section of `size` bytes that `read` gives access to."""
    found = DeviceCode()
    at = 0
    while (at := skip_zeros(read, at, size)) + _CONTAINER.size <= size:
        at &= ~7
        magic, _, head, payload = _CONTAINER.unpack(read(at, _CONTAINER.size))
        if magic != CONTAINER_MAGIC or head < _CONTAINER.size:
            found.problems.append(f"no fat binary at offset {at:#x} (found {magic:#010x})")
            return found
        end = at + head + payload
        if end > size:
            found.problems.append(f"the fat binary at offset {at:#x} goes past the section")
            return found
        _entries(read, at + head, end, found)
        at = (end + 7) & ~7
    return found


def skip_zeros(read: Read, at: int, size: int) -> int:
    """The offset of the first byte from `at` on that is not zero, `size` where there is none."""
    while at < size:
        block = read(at, 1 << 12)
        rest = block.lstrip(b"\0")
        if rest:
            return at + len(block) - len(rest)
        at += max(len(block), 1)
    return size


def _entries(read: Read, at: int, end: int, found: DeviceCode) -> None:
    while at + _ENTRY.size <= end:
        fields = _ENTRY.unpack(read(at, _ENTRY.size))
        kind, head, payload, number, flags = (fields[i] for i in (0, 2, 3, 8, 11))
        if head < _ENTRY.size or at + head + payload > end or not 0 < number < 1000:
            found.problems.append(f"the fat binary entry at offset {at:#x} is damaged")
            return
        suffix = "a" if flags & _SPECIFIC else "f" if flags & _FAMILY else ""
        found.add(f"{_KINDS.get(kind, f'kind{kind}')}_{number}{suffix}")
        at += head + payload
