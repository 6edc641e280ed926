"""Read one ELF file into `facts.Elf`. Runs in the limited child; any exception means "unreadable".

What a loader obeys is taken from where the loader takes it, the PT_DYNAMIC segment: section
headers can be stripped or lie. Tables are bounded by the size of the file before they are read.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, BinaryIO

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from port.verify.facts import CUDART_MARKERS, DEVICE_MACHINES, DeviceSection, Elf, Undefined
from port.verify.fatbin import CONTAINER_MAGIC, DeviceCode, read_fatbin
from port.verify.offload import GFX_MACHINES, PACKED_MAGIC, PLAIN_MAGIC, read_bundles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elftools.elf.sections import Section

    Sections = list[tuple[str, Section]]

STANDIN_SYMBOL = "monarch_standin"
DEVICE_SECTIONS = {
    ".nv_fatbin": read_fatbin,
    "__nv_relfatbin": read_fatbin,
    ".hip_fatbin": read_bundles,
}
# section with the wrappers -> platform, magic of a wrapper (cuda: fatbinary_section.h; hip: "FPIH")
_WRAPPERS = {".nvFatBinSegment": ("cuda", 0x466243B1), ".hipFatBinSegment": ("rocm", 0x48495046)}
_WRAPPER_SIZE = 24
_RELATIVE = {"EM_X86_64": 8, "EM_AARCH64": 1027, "EM_PPC64": 22, "EM_RISCV": 3}
_GLOBAL, _WEAK, _UNIQUE = 1, 2, 10
_SHN_ABS = 0xFFF1
_MAX_NAME = 1 << 16
_CHUNK = 1 << 22
_PF_X, _SHF_ALLOC, _SHF_EXECINSTR = 1, 2, 4
_DF_TEXTREL = 4
_DF_1_GLOBAL = 2


class UnreadableError(Exception):
    """The bytes are no ELF file that can be judged."""


def read(stream: BinaryIO) -> Elf:
    """Read the ELF file in `stream`. Raises UnreadableError, ELFError and what parsing raises."""
    return _Reader(stream).elf()


class _Reader:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._size = stream.seek(0, 2)
        stream.seek(0)
        self._file = ELFFile(stream)
        self._end = "<" if self._file.little_endian else ">"
        self._wide = self._file.elfclass == 64
        self._machine = str(self._file["e_machine"])
        self._loads: list[tuple[int, int, int]] = []
        self._dynamic: DynamicSegment | None = None
        self._interpreter = False
        self._stack: bool | None = None
        for segment in self._file.iter_segments():
            kind = segment["p_type"]
            if kind == "PT_LOAD":
                self._loads.append((segment["p_vaddr"], segment["p_filesz"], segment["p_offset"]))
            elif kind == "PT_INTERP":
                self._interpreter = True
            elif kind == "PT_GNU_STACK":
                self._stack = bool(segment["p_flags"] & _PF_X)
            elif isinstance(segment, DynamicSegment):
                self._dynamic = segment

    def elf(self) -> Elf:
        self._plausible()
        tags = self._tags()
        needs, versions = self._version_needs(tags)
        undefined, exported = self._symbols(tags, versions)
        strings = {
            name: [str(tag) for tag in values]
            for name, values in self._texts(tags)
            if name in ("DT_NEEDED", "DT_SONAME", "DT_RPATH", "DT_RUNPATH")
        }
        sections = [(section.name, section) for section in self._file.iter_sections()]
        device = tuple(self._device(sections))
        registers, problems = self._wrappers(sections, tags, device)
        calls = {item.name for item in undefined}
        for platform, name in (
            ("cuda", "__cudaRegisterFatBinary"),
            ("rocm", "__hipRegisterFatBinary"),
        ):
            if name in calls and platform not in registers:
                registers.append(platform)
        flags = tags.get("DT_FLAGS", [0])[0]
        return Elf(
            machine=self._machine,
            bits=self._file.elfclass,
            kind=str(self._file["e_type"]),
            interpreter=self._interpreter,
            needed=tuple(strings.get("DT_NEEDED", ())),
            soname=next(iter(strings.get("DT_SONAME", ())), None),
            rpath=":".join(strings["DT_RPATH"]) if "DT_RPATH" in strings else None,
            runpath=":".join(strings["DT_RUNPATH"]) if "DT_RUNPATH" in strings else None,
            version_needs=needs,
            undefined=tuple(undefined),
            exported=exported,
            stack=self._stack,
            text_relocations="DT_TEXTREL" in tags or bool(flags & _DF_TEXTREL),
            is_global=bool(tags.get("DT_FLAGS_1", [0])[0] & _DF_1_GLOBAL),
            static_cudart=self._markers(sections),
            device=device,
            registers=tuple(registers),
            wrapper_problems=tuple(problems),
            standin=STANDIN_SYMBOL in exported or STANDIN_SYMBOL in calls,
        )

    def _plausible(self) -> None:
        """Refuse what no loader takes: a damaged header would otherwise look like an empty file."""
        kind = str(self._file["e_type"])
        if self._machine in DEVICE_MACHINES or kind == "ET_REL":
            return
        if kind not in ("ET_DYN", "ET_EXEC") or self._machine == "EM_NONE":
            raise UnreadableError(f"neither a library nor a program ({kind}, {self._machine})")
        if not self._loads:
            raise UnreadableError("no segment is loaded")
        if kind == "ET_DYN" and self._dynamic is None:
            raise UnreadableError("a library without a dynamic section")

    # Dynamic section.

    def _tags(self) -> dict[str, list[int]]:
        tags: dict[str, list[int]] = {}
        if self._dynamic is not None:
            for tag in self._dynamic.iter_tags():
                tags.setdefault(str(tag.entry.d_tag), []).append(int(tag.entry.d_val))
        return tags

    def _texts(self, tags: dict[str, list[int]]) -> Iterator[tuple[str, list[str]]]:
        strings = self._strings(tags)
        for name in ("DT_NEEDED", "DT_SONAME", "DT_RPATH", "DT_RUNPATH"):
            if name in tags:
                yield name, [_text(strings, at) for at in tags[name]]

    def _strings(self, tags: dict[str, list[int]]) -> bytes:
        if "DT_STRTAB" not in tags:
            return b""
        size = tags.get("DT_STRSZ", [0])[0]
        return self._at_address(tags["DT_STRTAB"][0], size)

    def _at_address(self, address: int, size: int) -> bytes:
        for start, length, offset in self._loads:
            if start <= address < start + length:
                return self._exactly(offset + address - start, size)
        raise UnreadableError(f"no segment holds the address {address:#x}")

    def _exactly(self, offset: int, size: int) -> bytes:
        if size < 0 or offset + size > self._size:
            raise UnreadableError(f"a table at offset {offset:#x} goes past the end of the file")
        self._stream.seek(offset)
        return self._stream.read(size)

    def _upto(self, offset: int, size: int) -> bytes:
        self._stream.seek(offset)
        return self._stream.read(max(0, min(size, self._size - offset)))

    # Symbols and versions.

    def _version_needs(
        self, tags: dict[str, list[int]]
    ) -> tuple[dict[str, tuple[str, ...]], dict[int, tuple[str, str]]]:
        """Versions needed per file, and index -> (file, version) as symbols refer to them.

        A chain that runs in circles is refused: its steps are bounded by what the file can hold.
        """
        needs: dict[str, list[str]] = {}
        indices: dict[int, tuple[str, str]] = {}
        if "DT_VERNEED" not in tags:
            return {}, {}
        strings = self._strings(tags)
        at = tags["DT_VERNEED"][0]
        room = self._size // 16
        for _ in range(tags.get("DT_VERNEEDNUM", [0])[0]):
            _, count, file_at, aux, following = struct.unpack(
                self._end + "HHIII", self._at_address(at, 16)
            )
            file = _text(strings, file_at)
            versions = needs.setdefault(file, [])
            entry = at + aux
            for _ in range(count):
                room -= 1
                if room < 0:
                    raise UnreadableError("the chain of version needs has no end")
                _, _, other, name_at, step = struct.unpack(
                    self._end + "IHHII", self._at_address(entry, 16)
                )
                version = _text(strings, name_at)
                versions.append(version)
                indices[other & 0x7FFF] = (file, version)
                if not step:
                    break
                entry += step
            room -= 1
            if room < 0:
                raise UnreadableError("the chain of version needs has no end")
            if not following:
                break
            at += following
        return {file: tuple(versions) for file, versions in needs.items()}, indices

    def _symbols(
        self, tags: dict[str, list[int]], versions: dict[int, tuple[str, str]]
    ) -> tuple[list[Undefined], dict[str, bool]]:
        undefined: list[Undefined] = []
        exported: dict[str, bool] = {}
        count = self._symbol_count(tags)
        if "DT_SYMTAB" not in tags or not count:
            return undefined, exported
        layout = struct.Struct(self._end + ("IBBHQQ" if self._wide else "IIIBBH"))
        table = self._at_address(tags["DT_SYMTAB"][0], count * layout.size)
        strings = self._strings(tags)
        numbers: tuple[int, ...] = ()
        if "DT_VERSYM" in tags:
            numbers = struct.unpack(
                f"{self._end}{count}H", self._at_address(tags["DT_VERSYM"][0], 2 * count)
            )
        for index, fields in enumerate(layout.iter_unpack(table)):
            if self._wide:
                name_at, info, other, section = fields[:4]
            else:
                name_at, info, other, section = fields[0], fields[3], fields[4], fields[5]
            bind = info >> 4
            if not name_at or bind not in (_GLOBAL, _WEAK, _UNIQUE):
                continue
            name = _text(strings, name_at)
            if not section:
                number = numbers[index] & 0x7FFF if numbers else 0
                file, version = versions.get(number, (None, None))
                undefined.append(Undefined(name, bind == _WEAK, version, file))
            elif other & 3 in (0, 3) and section != _SHN_ABS:
                exported[name] = bind != _GLOBAL
        return undefined, exported

    def _symbol_count(self, tags: dict[str, list[int]]) -> int:
        if "DT_HASH" in tags:
            return int(struct.unpack(self._end + "II", self._at_address(tags["DT_HASH"][0], 8))[1])
        if "DT_GNU_HASH" not in tags:
            return 0
        at = tags["DT_GNU_HASH"][0]
        buckets, first, bloom, _ = struct.unpack(self._end + "4I", self._at_address(at, 16))
        at += 16 + bloom * (8 if self._wide else 4)
        table = struct.unpack(f"{self._end}{buckets}I", self._at_address(at, 4 * buckets))
        last = max(table, default=0)
        if last < first:
            return int(first)
        at += 4 * buckets + 4 * (last - first)
        while True:
            (value,) = struct.unpack(self._end + "I", self._at_address(at, 4))
            last += 1
            at += 4
            if value & 1:
                return int(last)

    # Device code.

    def _device(self, sections: Sections) -> Iterator[DeviceSection]:
        if self._machine in DEVICE_MACHINES:
            yield self._device_file()
        for name, section in sections:
            if name not in DEVICE_SECTIONS or not section["sh_size"]:
                continue
            offset, size = section["sh_offset"], section["sh_size"]
            if offset + size > self._size:
                raise UnreadableError(f"section {name} goes past the end of the file")
            found = DEVICE_SECTIONS[name](
                lambda at, length, offset=offset, size=size: self._upto(  # type: ignore[misc]
                    offset + at, min(length, size - at)
                ),
                size,
            )
            place = (offset, section["sh_addr"], size, section["sh_addralign"])
            yield self._section(name, place, found)

    def _device_file(self) -> DeviceSection:
        flags = int(self._file["e_flags"])
        found = DeviceCode()
        if self._machine == "EM_CUDA":
            version = self._file["e_ident"]["EI_ABIVERSION"]
            found.add(f"sm_{flags >> 8 & 0xFF if version >= 8 else flags & 0xFF}")
        elif flags & 0xFF in GFX_MACHINES:
            found.add(GFX_MACHINES[flags & 0xFF])
        else:
            found.notes.append(f"AMDGPU machine {flags & 0xFF:#x} is not known")
        return self._section("(whole file)", (0, 0, self._size, 1), found)

    def _section(
        self, name: str, place: tuple[int, int, int, int], found: DeviceCode
    ) -> DeviceSection:
        offset, address, size, align = place
        digest = hashlib.sha256()
        for at in range(0, size, _CHUNK):
            digest.update(self._upto(offset + at, min(_CHUNK, size - at)))
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

    def _wrappers(
        self,
        sections: Sections,
        tags: dict[str, list[int]],
        device: tuple[DeviceSection, ...],
    ) -> tuple[list[str], list[str]]:
        """Platforms that have wrappers here, and wrappers that do not point at device code.

        A loader hands each wrapper's pointer to the GPU runtime; a tool that moves the code
        without it leaves a file that loads and then fails at the first kernel.
        """
        platforms: list[str] = []
        problems: list[str] = []
        for name, section in sections:
            if name not in _WRAPPERS or not self._wide:
                continue
            platform, magic = _WRAPPERS[name]
            base, size = section["sh_addr"], section["sh_size"]
            data = self._exactly(section["sh_offset"], size)
            pointers: dict[int, int] = {}
            for at in range(0, size - _WRAPPER_SIZE + 1, _WRAPPER_SIZE):
                found, _, target = struct.unpack_from(self._end + "IIQ", data, at)
                if found == magic:
                    pointers[base + at + 8] = target
            if pointers and platform not in platforms:
                platforms.append(platform)
            pointers |= self._relocated(tags, pointers)
            for place, target in pointers.items():
                wrong = self._stray(target, device)
                if wrong:
                    problems.append(f"the wrapper at {place - 8:#x} in {name} points at {wrong}")
        return platforms, problems

    def _relocated(self, tags: dict[str, list[int]], pointers: dict[int, int]) -> dict[int, int]:
        kind = _RELATIVE.get(self._machine)
        if "DT_RELA" not in tags or kind is None:
            return {}
        size = tags.get("DT_RELASZ", [0])[0]
        table = self._at_address(tags["DT_RELA"][0], size - size % 24)
        return {
            place: addend
            for place, info, addend in struct.iter_unpack(self._end + "QQQ", table)
            if place in pointers and info == kind
        }

    def _stray(self, target: int, device: tuple[DeviceSection, ...]) -> str | None:
        for section in device:
            if section.address <= target < section.address + section.size:
                head = self._upto(section.offset + target - section.address, len(PLAIN_MAGIC))
                if (
                    head.startswith((CONTAINER_MAGIC.to_bytes(4, "little"), PACKED_MAGIC))
                    or head == PLAIN_MAGIC
                ):
                    return None
                return f"{target:#x} in {section.name}, where no device code begins"
        return f"{target:#x}, outside all device code" if device else None

    def _markers(self, sections: Sections) -> tuple[str, ...]:
        found: set[str] = set()
        keep = max(map(len, CUDART_MARKERS)) - 1
        for offset, end in self._data_spans(sections):
            held = b""
            for at in range(offset, end, _CHUNK):
                held = held[-keep:] + self._upto(at, min(_CHUNK, end - at))
                found |= {marker for marker in CUDART_MARKERS if marker.encode() in held}
        return tuple(marker for marker in CUDART_MARKERS if marker in found)

    def _data_spans(self, sections: Sections) -> list[tuple[int, int]]:
        """Parts of the file that hold constant data, each byte once, as far as the file goes."""
        spans = sorted(
            (section["sh_offset"], min(section["sh_offset"] + section["sh_size"], self._size))
            for name, section in sections
            if section["sh_type"] == "SHT_PROGBITS"
            and section["sh_flags"] & (_SHF_ALLOC | _SHF_EXECINSTR) == _SHF_ALLOC
            and name not in DEVICE_SECTIONS
        )
        if not sections:
            spans = [(0, self._size)]
        merged: list[tuple[int, int]] = []
        for start, end in spans:
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
        return merged


def _text(strings: bytes, at: int) -> str:
    end = strings.find(b"\0", at, at + _MAX_NAME)
    if at >= len(strings) or end < 0:
        raise UnreadableError(f"a name at {at:#x} lies outside the string table")
    return strings[at:end].decode("utf-8", "backslashreplace")
