"""The bytes of an ELF file as its loader addresses them, never past the end of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

if TYPE_CHECKING:
    from elftools.elf.sections import Section

    Sections = list[tuple[str, Section]]

_MAX_NAME = 1 << 16
_PF_X = 1


class UnreadableError(Exception):
    """The bytes are no ELF file that can be judged."""


class Image:
    """An ELF file: its header and segments, and reads by offset and by address.

    `end` is the prefix of the byte order for `struct`; `stack` whether the stack is executable,
    None where no segment says so.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = stream.seek(0, 2)
        stream.seek(0)
        self.file = ELFFile(stream)
        self.end = "<" if self.file.little_endian else ">"
        self.wide = self.file.elfclass == 64
        self.machine = str(self.file["e_machine"])
        self.loads: list[tuple[int, int, int]] = []
        self.dynamic: DynamicSegment | None = None
        self.interpreter = False
        self.stack: bool | None = None
        for segment in self.file.iter_segments():
            kind = segment["p_type"]
            if kind == "PT_LOAD":
                self.loads.append((segment["p_vaddr"], segment["p_filesz"], segment["p_offset"]))
            elif kind == "PT_INTERP":
                self.interpreter = True
            elif kind == "PT_GNU_STACK":
                self.stack = bool(segment["p_flags"] & _PF_X)
            elif isinstance(segment, DynamicSegment):
                self.dynamic = segment

    def sections(self) -> Sections:
        return [(section.name, section) for section in self.file.iter_sections()]

    def tags(self) -> dict[str, list[int]]:
        """Values of the dynamic section by the name of their tag."""
        tags: dict[str, list[int]] = {}
        if self.dynamic is not None:
            for tag in self.dynamic.iter_tags():
                tags.setdefault(str(tag.entry.d_tag), []).append(int(tag.entry.d_val))
        return tags

    def at_address(self, address: int, size: int) -> bytes:
        """`size` bytes.

        Raises:
            UnreadableError: no segment holds the address, or the file ends before them.

        """
        for start, length, offset in self.loads:
            if start <= address < start + length:
                return self.exactly(offset + address - start, size)
        raise UnreadableError(f"no segment holds the address {address:#x}")

    def exactly(self, offset: int, size: int) -> bytes:
        """`size` bytes.

        Raises:
            UnreadableError: the file ends before them.

        """
        if size < 0 or offset + size > self.size:
            raise UnreadableError(f"a table at offset {offset:#x} goes past the end of the file")
        self._stream.seek(offset)
        return self._stream.read(size)

    def upto(self, offset: int, size: int) -> bytes:
        """`size` bytes, fewer at the end of the file."""
        self._stream.seek(offset)
        return self._stream.read(max(0, min(size, self.size - offset)))


def text(strings: bytes, at: int) -> str:
    """The name at `at` of a string table.

    Raises:
        UnreadableError: there is none.

    """
    end = strings.find(b"\0", at, at + _MAX_NAME)
    if at >= len(strings) or end < 0:
        raise UnreadableError(f"a name at {at:#x} lies outside the string table")
    return strings[at:end].decode("utf-8", "backslashreplace")
