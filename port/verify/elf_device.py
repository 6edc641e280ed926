"""Device code in an ELF file: its sections, the wrappers that point at it, marks of cudart."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

from port.verify.elf_image import UnreadableError
from port.verify.facts import CUDART_MARKERS, DEVICE_MACHINES, DeviceSection
from port.verify.fatbin import CONTAINER_MAGIC, DeviceCode, read_fatbin
from port.verify.offload import GFX_MACHINES, PACKED_MAGIC, PLAIN_MAGIC, read_bundles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.verify.elf_image import Image, Sections

DEVICE_SECTIONS = {
    ".nv_fatbin": read_fatbin,
    "__nv_relfatbin": read_fatbin,
    ".hip_fatbin": read_bundles,
}
# section with the wrappers -> platform, magic of a wrapper (cuda: fatbinary_section.h; hip: "FPIH")
_WRAPPERS = {".nvFatBinSegment": ("cuda", 0x466243B1), ".hipFatBinSegment": ("rocm", 0x48495046)}
_WRAPPER_SIZE = 24
_RELATIVE = {"EM_X86_64": 8, "EM_AARCH64": 1027, "EM_PPC64": 22, "EM_RISCV": 3}
_CHUNK = 1 << 22
_SHF_ALLOC, _SHF_EXECINSTR = 2, 4


class DeviceReader:
    """Reads what a GPU or its runtime takes from `image`."""

    def __init__(self, image: Image, tags: dict[str, list[int]]) -> None:
        self._image = image
        self._tags = tags
        self._sections: Sections = image.sections()

    def sections(self) -> Iterator[DeviceSection]:
        if self._image.machine in DEVICE_MACHINES:
            yield self._device_file()
        for name, section in self._sections:
            if name not in DEVICE_SECTIONS or not section["sh_size"]:
                continue
            offset, size = section["sh_offset"], section["sh_size"]
            if offset + size > self._image.size:
                raise UnreadableError(f"section {name} goes past the end of the file")
            found = DEVICE_SECTIONS[name](
                lambda at, length, offset=offset, size=size: self._image.upto(  # type: ignore[misc]
                    offset + at, min(length, size - at)
                ),
                size,
            )
            place = (offset, section["sh_addr"], size, section["sh_addralign"])
            yield self._section(name, place, found)

    def _device_file(self) -> DeviceSection:
        flags = int(self._image.file["e_flags"])
        found = DeviceCode()
        if self._image.machine == "EM_CUDA":
            version = self._image.file["e_ident"]["EI_ABIVERSION"]
            found.add(f"sm_{flags >> 8 & 0xFF if version >= 8 else flags & 0xFF}")
        elif flags & 0xFF in GFX_MACHINES:
            found.add(GFX_MACHINES[flags & 0xFF])
        else:
            found.notes.append(f"AMDGPU machine {flags & 0xFF:#x} is not known")
        return self._section("(whole file)", (0, 0, self._image.size, 1), found)

    def _section(
        self, name: str, place: tuple[int, int, int, int], found: DeviceCode
    ) -> DeviceSection:
        offset, address, size, align = place
        digest = hashlib.sha256()
        for at in range(0, size, _CHUNK):
            digest.update(self._image.upto(offset + at, min(_CHUNK, size - at)))
        return DeviceSection(
            name=name,
            offset=offset,
            address=address,
            size=size,
            align=align,
            sha256=digest.hexdigest(),
            architectures=tuple(found.architectures),
            notes=tuple(found.notes),
            problems=tuple(found.problems),
        )

    def wrappers(self, device: tuple[DeviceSection, ...]) -> tuple[list[str], list[str]]:
        """Platforms that have wrappers here, and wrappers that do not point at device code.

        A loader hands each wrapper's pointer to the GPU runtime; a tool that moves the code
        without it leaves a file that loads and then fails at the first kernel.
        """
        platforms: list[str] = []
        problems: list[str] = []
        for name, section in self._sections:
            if name not in _WRAPPERS or not self._image.wide:
                continue
            platform, magic = _WRAPPERS[name]
            base, size = section["sh_addr"], section["sh_size"]
            data = self._image.exactly(section["sh_offset"], size)
            pointers: dict[int, int] = {}
            for at in range(0, size - _WRAPPER_SIZE + 1, _WRAPPER_SIZE):
                found, _, target = struct.unpack_from(self._image.end + "IIQ", data, at)
                if found == magic:
                    pointers[base + at + 8] = target
            if pointers and platform not in platforms:
                platforms.append(platform)
            pointers |= self._relocated(pointers)
            for place, target in pointers.items():
                wrong = self._stray(target, device)
                if wrong:
                    problems.append(f"the wrapper at {place - 8:#x} in {name} points at {wrong}")
        return platforms, problems

    def _relocated(self, pointers: dict[int, int]) -> dict[int, int]:
        tags = self._tags
        kind = _RELATIVE.get(self._image.machine)
        if "DT_RELA" not in tags or kind is None:
            return {}
        size = tags.get("DT_RELASZ", [0])[0]
        table = self._image.at_address(tags["DT_RELA"][0], size - size % 24)
        return {
            place: addend
            for place, info, addend in struct.iter_unpack(self._image.end + "QQQ", table)
            if place in pointers and info == kind
        }

    def _stray(self, target: int, device: tuple[DeviceSection, ...]) -> str | None:
        for section in device:
            if section.address <= target < section.address + section.size:
                head = self._image.upto(section.offset + target - section.address, len(PLAIN_MAGIC))
                if (
                    head.startswith((CONTAINER_MAGIC.to_bytes(4, "little"), PACKED_MAGIC))
                    or head == PLAIN_MAGIC
                ):
                    return None
                return f"{target:#x} in {section.name}, where no device code begins"
        return f"{target:#x}, outside all device code" if device else None

    def markers(self) -> tuple[str, ...]:
        """Marks of a static cudart in constant data."""
        found: set[str] = set()
        keep = max(map(len, CUDART_MARKERS)) - 1
        for offset, end in self._data_spans():
            held = b""
            for at in range(offset, end, _CHUNK):
                held = held[-keep:] + self._image.upto(at, min(_CHUNK, end - at))
                found |= {marker for marker in CUDART_MARKERS if marker.encode() in held}
        return tuple(marker for marker in CUDART_MARKERS if marker in found)

    def _data_spans(self) -> list[tuple[int, int]]:
        """Parts of the file that hold constant data, each byte once, as far as the file goes."""
        spans = sorted(
            (section["sh_offset"], min(section["sh_offset"] + section["sh_size"], self._image.size))
            for name, section in self._sections
            if section["sh_type"] == "SHT_PROGBITS"
            and section["sh_flags"] & (_SHF_ALLOC | _SHF_EXECINSTR) == _SHF_ALLOC
            and name not in DEVICE_SECTIONS
        )
        if not self._sections:
            spans = [(0, self._image.size)]
        merged: list[tuple[int, int]] = []
        for start, end in spans:
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
        return merged
