"""Read one ELF file into `facts.Elf`. Runs in the limited child; any exception means "unreadable".

What a loader obeys is taken from where the loader takes it, the PT_DYNAMIC segment: section
headers can be stripped or lie. Tables are bounded by the size of the file before they are read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from port.verify.elf_device import DeviceReader
from port.verify.elf_image import Image, UnreadableError, text
from port.verify.facts import DEVICE_MACHINES, Elf, Undefined

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDIN_SYMBOL = "monarch_standin"
_GLOBAL, _WEAK, _UNIQUE = 1, 2, 10
_SHN_ABS = 0xFFF1
_DF_TEXTREL = 4
_DF_1_GLOBAL = 2


def read(stream: BinaryIO) -> Elf:
    """Read the ELF file in `stream`.

    Raises:
        UnreadableError: a table lies outside of the file.
        ELFError: it is no ELF file.
        Exception: whatever else parsing raises on a damaged one.

    """
    return _Reader(Image(stream)).elf()


class _Reader:
    def __init__(self, image: Image) -> None:
        self._image = image

    def elf(self) -> Elf:
        self._plausible()
        tags = self._image.tags()
        needs, versions = self._version_needs(tags)
        undefined, exported = self._symbols(tags, versions)
        strings = dict(self._texts(tags))
        reader = DeviceReader(self._image, tags)
        device = tuple(reader.sections())
        registers, problems = reader.wrappers(device)
        calls = {item.name for item in undefined}
        for platform, name in (
            ("cuda", "__cudaRegisterFatBinary"),
            ("rocm", "__hipRegisterFatBinary"),
        ):
            if name in calls and platform not in registers:
                registers.append(platform)
        flags = tags.get("DT_FLAGS", [0])[0]
        return Elf(
            machine=self._image.machine,
            bits=self._image.file.elfclass,
            kind=str(self._image.file["e_type"]),
            interpreter=self._image.interpreter,
            needed=tuple(strings.get("DT_NEEDED", ())),
            soname=next(iter(strings.get("DT_SONAME", ())), None),
            rpath=":".join(strings["DT_RPATH"]) if "DT_RPATH" in strings else None,
            runpath=":".join(strings["DT_RUNPATH"]) if "DT_RUNPATH" in strings else None,
            version_needs=needs,
            undefined=tuple(undefined),
            exported=exported,
            stack=self._image.stack,
            text_relocations="DT_TEXTREL" in tags or bool(flags & _DF_TEXTREL),
            is_global=bool(tags.get("DT_FLAGS_1", [0])[0] & _DF_1_GLOBAL),
            static_cudart=reader.markers(),
            device=device,
            registers=tuple(registers),
            wrapper_problems=tuple(problems),
            standin=STANDIN_SYMBOL in exported or STANDIN_SYMBOL in calls,
        )

    def _plausible(self) -> None:
        """Refuse what no loader takes: a damaged header would otherwise look like an empty file."""
        kind = str(self._image.file["e_type"])
        if self._image.machine in DEVICE_MACHINES or kind == "ET_REL":
            return
        if kind not in ("ET_DYN", "ET_EXEC") or self._image.machine == "EM_NONE":
            raise UnreadableError(
                f"neither a library nor a program ({kind}, {self._image.machine})"
            )
        if not self._image.loads:
            raise UnreadableError("no segment is loaded")
        if kind == "ET_DYN" and self._image.dynamic is None:
            raise UnreadableError("a library without a dynamic section")

    # Dynamic section.

    def _texts(self, tags: dict[str, list[int]]) -> Iterator[tuple[str, list[str]]]:
        strings = self._strings(tags)
        for name in ("DT_NEEDED", "DT_SONAME", "DT_RPATH", "DT_RUNPATH"):
            if name in tags:
                yield name, [text(strings, at) for at in tags[name]]

    def _strings(self, tags: dict[str, list[int]]) -> bytes:
        if "DT_STRTAB" not in tags:
            return b""
        size = tags.get("DT_STRSZ", [0])[0]
        return self._image.at_address(tags["DT_STRTAB"][0], size)

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
        room = self._image.size // 16
        for _ in range(tags.get("DT_VERNEEDNUM", [0])[0]):
            _, count, file_at, aux, following = struct.unpack(
                self._image.end + "HHIII", self._image.at_address(at, 16)
            )
            file = text(strings, file_at)
            versions = needs.setdefault(file, [])
            entry = at + aux
            for _ in range(count):
                room -= 1
                if room < 0:
                    raise UnreadableError("the chain of version needs has no end")
                _, _, other, name_at, step = struct.unpack(
                    self._image.end + "IHHII", self._image.at_address(entry, 16)
                )
                version = text(strings, name_at)
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
        layout = struct.Struct(self._image.end + ("IBBHQQ" if self._image.wide else "IIIBBH"))
        table = self._image.at_address(tags["DT_SYMTAB"][0], count * layout.size)
        strings = self._strings(tags)
        numbers: tuple[int, ...] = ()
        if "DT_VERSYM" in tags:
            numbers = struct.unpack(
                f"{self._image.end}{count}H",
                self._image.at_address(tags["DT_VERSYM"][0], 2 * count),
            )
        for index, fields in enumerate(layout.iter_unpack(table)):
            if self._image.wide:
                name_at, info, other, section = fields[:4]
            else:
                name_at, info, other, section = fields[0], fields[3], fields[4], fields[5]
            bind = info >> 4
            if not name_at or bind not in (_GLOBAL, _WEAK, _UNIQUE):
                continue
            name = text(strings, name_at)
            if not section:
                number = numbers[index] & 0x7FFF if numbers else 0
                file, version = versions.get(number, (None, None))
                undefined.append(Undefined(name, bind == _WEAK, version, file))
            elif other & 3 in (0, 3) and section != _SHN_ABS:
                exported[name] = bind != _GLOBAL
        return undefined, exported

    def _symbol_count(self, tags: dict[str, list[int]]) -> int:
        if "DT_HASH" in tags:
            return int(
                struct.unpack(
                    self._image.end + "II", self._image.at_address(tags["DT_HASH"][0], 8)
                )[1]
            )
        if "DT_GNU_HASH" not in tags:
            return 0
        at = tags["DT_GNU_HASH"][0]
        buckets, first, bloom, _ = struct.unpack(
            self._image.end + "4I", self._image.at_address(at, 16)
        )
        at += 16 + bloom * (8 if self._image.wide else 4)
        table = struct.unpack(
            f"{self._image.end}{buckets}I", self._image.at_address(at, 4 * buckets)
        )
        last = max(table, default=0)
        if last < first:
            return int(first)
        at += 4 * buckets + 4 * (last - first)
        while True:
            (value,) = struct.unpack(self._image.end + "I", self._image.at_address(at, 4))
            last += 1
            at += 4
            if value & 1:
                return int(last)
