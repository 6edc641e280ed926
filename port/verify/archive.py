"""Strict reading of a ZIP archive: what two readers could understand differently is reported.

Nothing is unpacked to disk. Sizes, ratios and overlaps are judged from the headers before a
member is read, and a member never yields more bytes than its header declares.
Source of the format: APPNOTE.TXT 6.3.10, sections 4.3 and 4.4.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from port.errors import InputError, LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_ENTRIES = 100_000
MAX_RATIO = 200
# Bytes below which a ratio says nothing. Real members pass it harmlessly: patchelf pads libraries
# with megabytes of zeros (423 to 1 in nixl-cu12 1.5.1), so that one member may be as small as this
# while all of a wheel may not.
RATIO_FLOOR = 8_000_000
RATIO_FLOOR_OF_ALL = 100_000
MAX_UNPACKED = 4_000_000_000
CHUNK = 1 << 20

_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_END_MAGIC = b"PK\5\6"
_DESCRIPTOR_MAGIC = b"PK\7\x08"
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_ENCRYPTED, _DESCRIPTOR, _UTF8 = 0x1, 0x8, 0x800


class Entry(NamedTuple):
    """One member: sizes in bytes, `start` the file offset of its local header."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    start: int
    mode: int

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")


class Archive:
    """An open archive: `entries` in directory order, and `problems` in words."""

    def __init__(self, path: Path) -> None:
        """Open the file and judge all headers.

        Raises:
            InputError: the file is no readable ZIP.
            LimitError: it is a bomb.
            OSError: it cannot be opened.

        """
        self.path = path
        self.problems: list[str] = []
        self._file = path.open("rb")
        try:
            self._fd = self._file.fileno()
            self._size = os.fstat(self._fd).st_size
            directory = self._directory()
            self.entries = self._entries(*directory)
            self._data = self._tile(directory[0])
            self._judge_names()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; members cannot be read any more."""
        self._file.close()

    def chunks(self, entry: Entry) -> Iterator[bytes]:
        """The unpacked bytes of a member, piece by piece.

        Raises:
            InputError: it is damaged.

        """
        crc, seen = 0, 0
        for piece in self._unpacked(entry):
            crc = zlib.crc32(piece, crc)
            seen += len(piece)
            yield piece
        if seen != entry.size or crc != entry.crc:
            self._fail(
                f"member {entry.name!r} is damaged: length or checksum differ from its header"
            )

    def _unpacked(self, entry: Entry) -> Iterator[bytes]:
        at, left = self._data[entry.start], entry.packed
        if entry.method == 0:
            while left:
                piece = self._read(at, min(CHUNK, left))
                at, left = at + len(piece), left - len(piece)
                yield piece
            return
        if entry.method != zlib.DEFLATED:
            self._fail(f"member {entry.name!r} is packed by method {entry.method}, wanted 0 or 8")
        unpack = zlib.decompressobj(-zlib.MAX_WBITS)
        room = entry.size + 1
        try:
            while left and not unpack.eof:
                packed = self._read(at, min(CHUNK, left))
                at, left = at + len(packed), left - len(packed)
                while packed and room > 0:
                    piece = unpack.decompress(packed, min(CHUNK, room))
                    packed, room = unpack.unconsumed_tail, room - len(piece)
                    yield piece
        except zlib.error as error:
            self._fail(f"member {entry.name!r} cannot be unpacked: {error}")
        if left or not unpack.eof or unpack.unused_data:
            self._fail(f"member {entry.name!r} is damaged: its packed length is wrong")

    def _directory(self) -> tuple[int, int, int, int]:
        """Offset, size and count of the central directory, and how far offsets are shifted."""
        tail_size = min(self._size, _END.size + 0xFFFF)
        tail = self._read(self._size - tail_size, tail_size)
        found = tail.rfind(_END_MAGIC, 0, max(0, len(tail) - _END.size + len(_END_MAGIC)))
        if found < 0:
            self._fail("not a wheel: no ZIP end record (truncated, or another kind of file)")
        at = self._size - tail_size + found
        _, disk, first, here, count, size, offset, comment = _END.unpack_from(tail, found)
        end = at + _END.size + comment
        if end > self._size:
            self._fail("not a wheel: the ZIP end record goes past the end of the file (truncated)")
        if end < self._size:
            self.problems.append(f"{self._size - end} bytes of trailing data after the end record")
        if _END_MAGIC in tail[found + len(_END_MAGIC) :]:
            self.problems.append("two end records")
        if disk or first or here != count:
            self._fail("not a wheel: a ZIP archive in several volumes")
        stop = at
        if at >= _LOCATOR.size:
            magic, _, end64, _ = _LOCATOR.unpack(self._read(at - _LOCATOR.size, _LOCATOR.size))
            if magic == b"PK\6\7":
                stop = end64
                large = self._end64(end64)
                for small, big, full in (
                    (count, large[0], 0xFFFF),
                    (size, large[1], 0xFFFFFFFF),
                    (offset, large[2], 0xFFFFFFFF),
                ):
                    if small not in (big, full):
                        self.problems.append("the two end records (ZIP and ZIP64) disagree")
                count, size, offset = large
        shift = stop - size - offset
        if shift < 0:
            self._fail("not a wheel: the ZIP directory lies outside the file (truncated)")
        if count > MAX_ENTRIES:
            raise LimitError(f"{self.path}: {count} entries, at most {MAX_ENTRIES} are read")
        return offset + shift, size, count, shift

    def _end64(self, at: int) -> tuple[int, int, int]:
        if at + _END64.size > self._size:
            self._fail("not a wheel: the ZIP64 end record lies outside the file")
        magic, _, _, _, _, _, _, count, size, offset = _END64.unpack(self._read(at, _END64.size))
        if magic != b"PK\6\6":
            self._fail("not a wheel: no ZIP64 end record where its locator points")
        return count, size, offset

    def _entries(self, offset: int, size: int, count: int, shift: int) -> list[Entry]:
        data = self._read(offset, size)
        entries: list[Entry] = []
        at = 0
        while at < size:
            if size - at < _CENTRAL.size or not data.startswith(b"PK\1\2", at):
                self._fail("not a wheel: the ZIP directory is damaged")
            fields = _CENTRAL.unpack_from(data, at)
            name_size, extra_size, comment_size = fields[10:13]
            name_at = at + _CENTRAL.size
            extra_at = name_at + name_size
            at = extra_at + extra_size + comment_size
            if at > size:
                self._fail("not a wheel: the ZIP directory is damaged")
            entries.append(
                self._entry(
                    fields, data[name_at:extra_at], data[extra_at : extra_at + extra_size], shift
                )
            )
            if len(entries) > MAX_ENTRIES:
                raise LimitError(f"{self.path}: more than {MAX_ENTRIES} entries")
        if len(entries) != count:
            self.problems.append(f"the end record says entries: {count}; found: {len(entries)}")
        self._judge_sizes(entries)
        return entries

    def _entry(self, fields: tuple[int, ...], raw: bytes, extra: bytes, shift: int) -> Entry:
        flags, method, crc, packed, size = fields[3], fields[4], *fields[7:10]
        start, attributes = fields[16], fields[15]
        extras = self._extras(extra)
        wide = extras.get(1, b"")
        values = [size, packed, start]
        for index, value in enumerate(values):
            if value == 0xFFFFFFFF:
                if len(wide) < 8:
                    self._fail("not a wheel: a ZIP64 size is missing in the directory")
                values[index], wide = int.from_bytes(wide[:8], "little"), wide[8:]
        size, packed, start = values
        name = self._decode(raw, flags)
        if 0x7075 in extras and extras[0x7075][5:] != raw:
            self.problems.append(f"member {name!r} has a second name in its extra field")
        if flags & _ENCRYPTED:
            self._fail(f"member {name!r} is encrypted")
        unix = fields[1] >> 8 in (3, 19)
        return Entry(
            name=name,
            raw_name=raw,
            flags=flags,
            method=method,
            crc=crc,
            packed=packed,
            size=size,
            start=start + shift,
            mode=attributes >> 16 if unix else 0,
        )

    def _decode(self, raw: bytes, flags: int) -> str:
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            name = raw.decode("cp437")
            self.problems.append(f"member name {raw!r} is not UTF-8")
            return name
        if not raw.isascii() and not flags & _UTF8:
            self.problems.append(f"member name {name!r} is not marked as UTF-8")
        return name

    def _extras(self, extra: bytes) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        at = 0
        while at + 4 <= len(extra):
            kind, size = struct.unpack_from("<HH", extra, at)
            found.setdefault(kind, extra[at + 4 : at + 4 + size])
            at += 4 + size
        return found

    def _judge_sizes(self, entries: list[Entry]) -> None:
        total = 0
        for entry in entries:
            total += entry.size
            if entry.size > RATIO_FLOOR and entry.size > MAX_RATIO * entry.packed:
                raise LimitError(
                    f"{self.path}: member {entry.name!r} would unpack from {entry.packed} to "
                    f"{entry.size} bytes, more than {MAX_RATIO} to 1"
                )
        if total > MAX_UNPACKED:
            raise LimitError(
                f"{self.path}: {total} bytes unpacked, at most {MAX_UNPACKED} are read"
            )
        if total > RATIO_FLOOR_OF_ALL and total > MAX_RATIO * self._size:
            raise LimitError(
                f"{self.path}: {self._size} bytes would unpack to {total}, more than "
                f"{MAX_RATIO} to 1"
            )

    def _tile(self, directory: int) -> dict[int, int]:
        """Check that local headers agree and that members fill the file up to the directory,
        without overlap or gap. Gives the offset of each member's data by that of its header.
        """
        data: dict[int, int] = {}
        at, before = 0, "the start"
        for entry in sorted(self.entries, key=lambda entry: entry.start):
            if entry.start < at:
                raise LimitError(f"{self.path}: member {entry.name!r} overlaps {before}")
            self._gap(at, entry.start, before, entry.name)
            begin = self._local(entry)
            data[entry.start] = begin
            at = begin + entry.packed
            if at > directory:
                raise LimitError(f"{self.path}: member {entry.name!r} overlaps the directory")
            if entry.flags & _DESCRIPTOR:
                at += self._descriptor(entry, at)
            before = entry.name
        self._gap(at, directory, before, "the directory")
        return data

    def _gap(self, start: int, stop: int, before: str, after: str) -> None:
        if start >= stop:
            return
        held = self._read(start, min(stop - start, CHUNK))
        what = "leading data" if start == 0 else f"data between {before} and {after}"
        second = ", with a second end record" if _END_MAGIC in held else ""
        self.problems.append(f"{stop - start} bytes of {what}{second}")

    def _local(self, entry: Entry) -> int:
        head = self._read(entry.start, min(_LOCAL.size, max(0, self._size - entry.start)))
        if len(head) < _LOCAL.size or not head.startswith(b"PK\3\4"):
            self._fail(f"member {entry.name!r} has no local header")
        _, _, flags, method, _, _, crc, packed, size, name_size, extra_size = _LOCAL.unpack(head)
        begin = int(entry.start + _LOCAL.size + name_size + extra_size)
        if begin + entry.packed > self._size:
            self._fail(f"member {entry.name!r} goes past the end of the file")
        after = self._read(entry.start + _LOCAL.size, name_size + extra_size)
        wide = self._extras(after[name_size:]).get(1, b"")
        if size == 0xFFFFFFFF and packed == 0xFFFFFFFF and len(wide) >= 16:
            size, packed = struct.unpack_from("<QQ", wide)
        told = {
            "name": (after[:name_size], entry.raw_name),
            "method": (method, entry.method),
            "flags": (
                flags & (_DESCRIPTOR | _UTF8 | _ENCRYPTED),
                entry.flags & (_DESCRIPTOR | _UTF8),
            ),
        }
        if not flags & _DESCRIPTOR or crc or packed or size:
            told["checksum"] = (crc, entry.crc)
            told["packed size"] = (packed, entry.packed)
            told["size"] = (size, entry.size)
        for what, (local, central) in told.items():
            if local != central:
                self.problems.append(
                    f"member {entry.name!r}: local and central {what} differ: "
                    f"{local!r}, {central!r}"
                )
        return begin

    def _descriptor(self, entry: Entry, at: int) -> int:
        held = self._read(at, min(24, self._size - at))
        for layout in ("<III", "<IQQ"):
            for magic in (_DESCRIPTOR_MAGIC, b""):
                want = magic + struct.pack(layout, entry.crc, *self._fitting(layout, entry))
                if held.startswith(want):
                    return len(want)
        self.problems.append(
            f"member {entry.name!r}: its data descriptor differs from the directory"
        )
        return 0

    @staticmethod
    def _fitting(layout: str, entry: Entry) -> tuple[int, int]:
        mask = 0xFFFFFFFF if layout == "<III" else 0xFFFFFFFFFFFFFFFF
        return entry.packed & mask, entry.size & mask

    def _judge_names(self) -> None:
        seen: set[str] = set()
        files = {entry.name for entry in self.entries if not entry.is_folder}
        for entry in self.entries:
            if entry.name in seen:
                self.problems.append(f"member {entry.name!r} is there twice")
            seen.add(entry.name)
            wrong = unsafe(entry.name)
            if wrong:
                self.problems.append(f"member name {entry.name!r} {wrong}")
            kind = stat.S_IFMT(entry.mode)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                word = "a symbolic link" if kind == stat.S_IFLNK else "a device or special file"
                self.problems.append(f"member {entry.name!r} is {word}")
            if entry.is_folder and entry.size:
                self.problems.append(f"member {entry.name!r} is a folder that holds data")
            parts = entry.name.rstrip("/").split("/")[:-1]
            for depth in range(1, len(parts) + 1):
                if "/".join(parts[:depth]) in files:
                    self.problems.append(f"member {entry.name!r} lies inside another file")

    def _read(self, at: int, size: int) -> bytes:
        data = os.pread(self._fd, size, at)
        while len(data) < size:
            more = os.pread(self._fd, size - len(data), at + len(data))
            if not more:
                self._fail("the file became shorter while it was read")
            data += more
        return data

    def _fail(self, what: str) -> NoReturn:
        raise InputError(f"{self.path}: {what}")


def unsafe(name: str) -> str | None:
    """What is wrong with a relative path inside a wheel, or None."""
    if not name:
        return "is empty"
    if "\\" in name:
        return "holds a backslash"
    if name.startswith("/"):
        return "is absolute"
    if len(name) > 1 and name[1] == ":":
        return "holds a drive letter"
    if _CONTROL.search(name):
        return "holds a control character"
    parts = name.rstrip("/").split("/")
    if ".." in parts:
        return "holds '..'"
    if "" in parts or "." in parts or name.endswith("//"):
        return "holds an empty or '.' part"
    return None
