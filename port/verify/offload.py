"""Architectures in HIP fat binaries: clang offload bundles, plain or packed.

Layout as clang documents it (ClangOffloadBundler): a plain bundle is the 24-byte magic
`__CLANG_OFFLOAD_BUNDLE__`, `u64 count`, then per entry `u64 offset, u64 size, u64 length` and the
entry's id of that length. A packed one is `CCOB, u16 version, u16 method` (0 zlib, 1 zstd), from
version 2 on the whole size, then the unpacked size and a hash; version 3 has sizes of 64 bits.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from port.verify.fatbin import DeviceCode, skip_zeros

if TYPE_CHECKING:
    from port.verify.fatbin import Read

PLAIN_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
PACKED_MAGIC = b"CCOB"
# LLVM's AMDGPU user guide, table of e_flags' EF_AMDGPU_MACH.
GFX_MACHINES = {
    0x28: "gfx801", 0x29: "gfx802", 0x2A: "gfx803", 0x2B: "gfx810", 0x2C: "gfx900", 0x2D: "gfx902",
    0x2E: "gfx904", 0x2F: "gfx906", 0x30: "gfx908", 0x31: "gfx909", 0x32: "gfx90c", 0x33: "gfx1010",
    0x34: "gfx1011", 0x35: "gfx1012", 0x36: "gfx1030", 0x37: "gfx1031", 0x38: "gfx1032",
    0x39: "gfx1033", 0x3D: "gfx1035", 0x3E: "gfx1034", 0x3F: "gfx90a", 0x40: "gfx940",
    0x41: "gfx1100", 0x42: "gfx1013", 0x43: "gfx1150", 0x44: "gfx1103", 0x45: "gfx1036",
    0x46: "gfx1101", 0x47: "gfx1102", 0x48: "gfx1200", 0x4A: "gfx1151", 0x4B: "gfx941",
    0x4C: "gfx942", 0x4E: "gfx1201", 0x4F: "gfx950",
}  # fmt: skip

_HEAD_ROOM = 1 << 16  # bytes of an unpacked bundle that are looked at: its table of entries
_MAX_ENTRIES = 4096
_MAX_ID = 4096


def read_bundles(read: Read, size: int) -> DeviceCode:
    """Read the `.hip_fatbin` section of `size` bytes that `read` gives access to."""
    found = DeviceCode()
    at = 0
    while at < size:
        magic = read(at, len(PLAIN_MAGIC))
        if magic == PLAIN_MAGIC:
            length = _plain(lambda o, n, at=at: read(at + o, n), size - at, found, at)  # type: ignore[misc]
        elif magic.startswith(PACKED_MAGIC):
            length = _packed(read, at, size, found)
        elif not magic.strip(b"\0"):
            at = skip_zeros(read, at, size)
            continue
        else:
            found.problems.append(f"no offload bundle at offset {at:#x} (found {magic[:8]!r})")
            return found
        if length <= 0:
            return found
        at += length
    return found


def _plain(read: Read, size: int, found: DeviceCode, where: int) -> int:
    """Take the entries of one plain bundle; gives its length, 0 where it is damaged."""
    at = len(PLAIN_MAGIC)
    head = read(at, 8)
    count = int.from_bytes(head, "little")
    if len(head) < 8 or count > _MAX_ENTRIES:
        found.problems.append(f"the offload bundle at offset {where:#x} is damaged")
        return 0
    at += 8
    length = at
    for _ in range(count):
        fields = read(at, 24)
        if len(fields) < 24:
            found.problems.append(f"the offload bundle at offset {where:#x} is cut off")
            return 0
        offset, code_size, id_size = struct.unpack("<QQQ", fields)
        ident = read(at + 24, min(id_size, _MAX_ID))
        at += 24 + id_size
        if id_size > _MAX_ID or len(ident) < id_size or offset + code_size > size:
            found.problems.append(f"the offload bundle at offset {where:#x} goes past the section")
            return 0
        length = max(length, at, offset + code_size)
        kind, _, architecture = ident.decode("latin-1").partition("--")
        if architecture and not kind.startswith("host"):
            found.add(architecture)
            if code_size and architecture.startswith("gfx") and read(offset, 4) != b"\x7fELF":
                found.problems.append(f"the code for {architecture} at {where:#x} is not ELF")
    return length


def _packed(read: Read, at: int, size: int, found: DeviceCode) -> int:
    """Take what can be told of one packed bundle; gives its length."""
    head = read(at, 32).ljust(32, b"\0")
    version, method = struct.unpack_from("<HH", head, 4)
    if version == 1:
        whole, unpacked, head_size = 0, int.from_bytes(head[8:12], "little"), 20
    elif version == 2:
        whole, unpacked, head_size = *struct.unpack_from("<II", head, 8), 24
    elif version == 3:
        whole, unpacked, head_size = *struct.unpack_from("<QQ", head, 8), 32
    else:
        found.problems.append(f"the packed bundle at offset {at:#x} has unknown version {version}")
        return 0
    if whole and (whole < head_size or at + whole > size):
        found.problems.append(f"the packed bundle at offset {at:#x} goes past the section")
        return 0
    length = whole or _next_magic(read, at, size) - at
    data = read(at + head_size, min(length - head_size, 1 << 20))
    table = _unpack(data, method)
    if table is not None and table.startswith(PLAIN_MAGIC):
        _plain(lambda o, n: table[o : o + n], unpacked, (inner := DeviceCode()), at)
        for architecture in inner.architectures:
            found.add(architecture)
    elif table is not None:
        found.problems.append(f"the packed bundle at offset {at:#x} does not unpack to a bundle")
    else:
        way = {0: "zlib", 1: "zstd"}.get(method, f"method {method}")
        found.notes.append(
            f"a packed bundle (CCOB {version}, {way}, {unpacked} bytes unpacked) at {at:#x} "
            "could not be unpacked: its architectures are not known"
        )
    return length


def _unpack(data: bytes, method: int) -> bytes | None:
    if method == 0:
        try:
            return zlib.decompressobj().decompress(data, _HEAD_ROOM)
        except zlib.error:
            return None
    if method == 1:
        from port.verify import zstd  # noqa: PLC0415 - few files need it, and each command loads this

        try:
            return zstd.unpack_head(data, _HEAD_ROOM)
        except zstd.ZstdError:
            return None
    return None


def _next_magic(read: Read, at: int, size: int) -> int:
    """Offset of the next bundle behind a version 1 container, which does not tell its length."""
    at += len(PACKED_MAGIC)
    while at < size:
        block = read(at, 1 << 20)
        hits = [h for h in (block.find(PACKED_MAGIC), block.find(PLAIN_MAGIC)) if h >= 0]
        if hits:
            return at + min(hits)
        at += max(len(block) - len(PLAIN_MAGIC), 1)
    return size
