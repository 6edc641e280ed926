"""Truncated, hostile and ambiguous archives: a verdict or one line, never a traceback."""

from __future__ import annotations

import os
import stat
import struct
import time
import zipfile
import zlib
from contextlib import closing

import pytest

from port.errors import InputError, LimitError
from port.verify import verify
from port.verify.archive import MAX_ENTRIES, MAX_UNPACKED, Archive
from tests.port.verify import elf_writer as w
from tests.port.verify.commands import run

END = struct.Struct("<4s4H2IH")


def a_wheel(folder):
    files = {"pkg/_C.so": w.cuda_module(), "pkg/__init__.py": b"value = 1\n" * 50}
    return w.wheel(folder, files, "pkg-cuda")


@pytest.mark.promise("B01")
def test_wheel_truncated_anywhere_is_one_line_and_exit_2(tmp_path):
    whole = a_wheel(tmp_path).read_bytes()
    path = tmp_path / "cut-1.0-py3-none-any.whl"
    for step in range(200):
        path.write_bytes(whole[: len(whole) * step // 200])
        started = time.process_time()
        done = run(str(path), "--json")
        assert time.process_time() - started < 1
        assert done.status == 2
        assert done.out == ""
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1


@pytest.mark.promise("B01")
def test_wheel_truncated_inside_its_end_record_is_refused(tmp_path):
    whole = a_wheel(tmp_path).read_bytes()
    path = tmp_path / "cut.whl"
    for left in range(1, 23):
        path.write_bytes(whole[:-left])
        assert run(str(path)).status == 2


def open_archive(path):
    with closing(Archive(path)) as archive:
        return archive


def problems(path):
    return "; ".join(open_archive(path).problems)


def zip_of(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


@pytest.mark.promise("B03")
def test_ratio_is_judged_before_reading(tmp_path):
    path = zip_of(tmp_path / "a.whl", [("zeros", bytes(30_000_000))])
    done = run(str(path))
    assert done.status == 3
    assert done.err.count("\n") == 1
    assert "'zeros'" in done.err


@pytest.mark.promise("B03")
def test_small_padded_library_among_others_is_no_bomb(tmp_path):
    members = [("lib.so", os.urandom(10_000) + bytes(4_000_000)), ("other", os.urandom(50_000))]
    assert open_archive(zip_of(tmp_path / "a.whl", members)).problems == []
    with pytest.raises(LimitError, match="more than 200 to 1"):
        open_archive(zip_of(tmp_path / "a.whl", [("zeros", bytes(400_000))]))


@pytest.mark.promise("B03")
def test_declared_sum_past_the_budget_is_refused_unread(tmp_path):
    path = zip_of(tmp_path / "a.whl", [(f"part{n}", os.urandom(1000)) for n in range(3)])
    data = bytearray(path.read_bytes())
    at = data.find(b"PK\1\2")
    while at >= 0:
        struct.pack_into("<II", data, at + 20, 0xF0000000, 0x80000000)
        at = data.find(b"PK\1\2", at + 1)
    path.write_bytes(data)
    assert MAX_UNPACKED < 3 * 0x80000000
    with pytest.raises(LimitError, match="at most"):
        open_archive(path)


@pytest.mark.promise("B03")
def test_four_gibibytes_of_zeros_declared(tmp_path):
    path = zip_of(tmp_path / "a.whl", [("zeros", bytes(1000))])
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.find(b"PK\1\2") + 24, 0xFFFFFFFE)
    path.write_bytes(data)
    assert run(str(path)).status == 3


@pytest.mark.promise("B03")
def test_member_that_unpacks_past_its_declared_size_stops_there(tmp_path):
    path = zip_of(tmp_path / "a.whl", [("zeros", bytes(90_000))])
    data = bytearray(path.read_bytes())
    for magic, place in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        struct.pack_into("<I", data, data.find(magic) + place, 100)
    path.write_bytes(data)
    seen = []
    with closing(Archive(path)) as archive, pytest.raises(InputError, match="damaged"):
        seen.extend(archive.chunks(archive.entries[0]))
    assert sum(map(len, seen)) <= 101


@pytest.mark.promise("B03")
def test_overlapping_members_are_refused(tmp_path):
    path = zip_of(tmp_path / "a.whl", [("one", b"1" * 500), ("two", b"2" * 500)])
    data = bytearray(path.read_bytes())
    second = data.find(b"PK\1\2", data.find(b"PK\1\2") + 1)
    struct.pack_into("<I", data, second + 42, 0)
    path.write_bytes(data)
    done = run(str(path))
    assert done.status == 3
    assert "overlaps" in done.err


@pytest.mark.promise("B03")
def test_quoted_overlap_is_refused(tmp_path):
    """Each member's data begins with the header of the next, quoted in a stored block."""
    kernel = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = kernel.compress(bytes(1 << 20)) + kernel.flush()
    local = struct.Struct("<4s5H3I2H")

    def header(name, size_packed, size, crc):
        fields = (b"PK\3\4", 20, 0, 8, 0, 33, crc, size_packed, size, len(name), 0)
        return local.pack(*fields) + name

    crc = zlib.crc32(bytes(1 << 20))
    last = header(b"b", len(packed), 1 << 20, crc) + packed
    quote = struct.pack("<BHH", 0, len(last) - len(packed), 0xFFFF ^ (len(last) - len(packed)))
    inner = quote + last
    first = header(b"a", len(inner), 1 << 20, 0)
    central = b""
    for name, start, size_packed in ((b"a", 0, len(inner)), (b"b", len(first) + 5, len(packed))):
        central += struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 33, crc, size_packed, 100_000, len(name),
            0, 0, 0, 0, 0, start,
        ) + name  # fmt: skip
    end = END.pack(b"PK\5\6", 0, 0, 2, 2, len(central), len(first) + len(inner), 0)
    path = tmp_path / "a.whl"
    path.write_bytes(first + inner + central + end)
    with pytest.raises(LimitError, match="overlaps"):
        open_archive(path)


@pytest.mark.promise("B03")
def test_too_many_entries_are_refused_by_the_count_alone(tmp_path):
    path = zip_of(tmp_path / "a.whl", [("one", b"1")])
    data = path.read_bytes()
    at = data.rfind(b"PK\5\6")
    _, _, _, _, _, size, offset, _ = END.unpack_from(data, at)
    end64 = struct.pack(
        "<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, MAX_ENTRIES + 1, MAX_ENTRIES + 1, size, offset
    )
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at, 1)
    end = END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, size, offset, 0)
    path.write_bytes(data[:at] + end64 + locator + end)
    done = run(str(path))
    assert done.status == 3
    assert str(MAX_ENTRIES + 1) in done.err


def test_zip64_records_are_read(tmp_path):
    path = tmp_path / "a.whl"
    with (
        zipfile.ZipFile(path, "w") as archive,
        archive.open("a", "w", force_zip64=True) as member,
    ):
        member.write(b"x" * 1000)
    assert open_archive(path).problems == []


def duplicate(path):
    with pytest.warns(UserWarning, match="Duplicate"):
        zip_of(path, [("a.py", b"1"), ("a.py", b"2")])


def renamed(name, *, flags=None):
    def make(path):
        zip_of(path, [("x" * len(name), b"data")])
        data = path.read_bytes().replace(b"x" * len(name), name)
        if flags is not None:
            out = bytearray(data)
            for magic, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
                struct.pack_into("<H", out, out.find(magic) + place, flags)
            data = bytes(out)
        path.write_bytes(data)

    return make


def patched(magic, place, layout, value):
    def make(path):
        zip_of(path, [("a.py", b"data")])
        data = bytearray(path.read_bytes())
        struct.pack_into(layout, data, data.find(magic) + place, value)
        path.write_bytes(data)

    return make


def with_mode(mode):
    def make(path):
        info = zipfile.ZipInfo("link")
        info.external_attr = mode << 16
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(info, "/etc/passwd")

    return make


def surrounded(before=b"", after=b""):
    def make(path):
        zip_of(path, [("a.py", b"data")])
        path.write_bytes(before + path.read_bytes() + after)

    return make


def two_archives(path):
    zip_of(path, [("a.py", b"one")])
    first = path.read_bytes()
    zip_of(path, [("b.py", b"two")])
    path.write_bytes(first + path.read_bytes())


def end_in_comment(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.py", "data")
        archive.comment = b"PK\5\6" + bytes(18)


def second_name(path):
    info = zipfile.ZipInfo("a.py")
    info.extra = struct.pack("<HHBI", 0x7075, 9, 1, 0) + b"b.py"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "data")


def file_as_folder(path):
    zip_of(path, [("a", b"1"), ("a/b", b"2")])


AMBIGUOUS = {
    "duplicates": (duplicate, "twice"),
    "local name": (patched(b"PK\3\4", 30, "<B", 0x62), "local and central name differ"),
    "local method": (patched(b"PK\3\4", 8, "<H", 0), "local and central method differ"),
    "local size": (patched(b"PK\3\4", 22, "<I", 9), "local and central size differ"),
    "local checksum": (patched(b"PK\3\4", 14, "<I", 9), "local and central checksum differ"),
    "trailing data": (surrounded(after=b"more"), "4 bytes of trailing data"),
    "leading data": (surrounded(before=b"#!/bin/sh\n"), "10 bytes of leading data"),
    "two end records": (two_archives, "second end record"),
    "end record in comment": (end_in_comment, "second end record"),
    "not UTF-8": (renamed(b"\xff\xfe.py"), "is not UTF-8"),
    "not marked as UTF-8": (renamed("\xe9.py".encode(), flags=0), "not marked as UTF-8"),
    "absolute": (renamed(b"/etc/passwd"), "is absolute"),
    "dots": (renamed(b"a/../../b.py"), "holds '..'"),
    "backslash": (renamed(b"a\\b.py"), "backslash"),
    "drive": (renamed(b"C:/b.py"), "drive letter"),
    "control": (renamed(b"a\n.py"), "control character"),
    "empty part": (renamed(b"a//b.py"), "empty or '.' part"),
    "symbolic link": (with_mode(stat.S_IFLNK | 0o777), "symbolic link"),
    "device": (with_mode(stat.S_IFCHR | 0o666), "device or special file"),
    "second name": (second_name, "second name"),
    "file as folder": (file_as_folder, "inside another file"),
}


@pytest.mark.promise("B04")
@pytest.mark.parametrize("kind", sorted(AMBIGUOUS))
def test_ambiguous_archive_is_a_finding(kind, tmp_path, monkeypatch):
    make, words = AMBIGUOUS[kind]
    path = tmp_path / "pkg-1.0-py3-none-any.whl"
    make(path)
    assert words in problems(path)
    before = set(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    done = run(str(path))
    assert done.status == 1
    assert "V19" in done.out
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.promise("B04")
def test_nothing_is_written_to_disk(tmp_path, monkeypatch):
    path = a_wheel(tmp_path)
    opened = []
    real = os.open

    def watch(name, flags, *rest, **more):
        if name != os.devnull and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            opened.append(name)
        return real(name, flags, *rest, **more)

    monkeypatch.setattr(os, "open", watch)
    verify(path)
    assert opened == []


def test_data_descriptors_of_streamed_members_are_accepted(tmp_path):
    path = tmp_path / "a.whl"

    class Unseekable:
        def __init__(self, file):
            self.write, self.flush = file.write, file.flush

    with path.open("wb") as file, zipfile.ZipFile(Unseekable(file), "w") as archive:
        archive.writestr("a.py", "data")
        archive.writestr("b.py", "more")
    assert problems(path) == ""


@pytest.mark.parametrize("change", ["method", "encrypted", "crc"])
def test_member_that_cannot_be_read_is_exit_2(change, tmp_path):
    path = a_wheel(tmp_path)
    data = bytearray(path.read_bytes())
    for magic, base in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = data.find(magic)
        if change == "method":
            struct.pack_into("<H", data, at + base + 2, 12)
        elif change == "encrypted":
            struct.pack_into("<H", data, at + base, 1)
        else:
            struct.pack_into("<I", data, at + base + 8, 1)
    path.write_bytes(data)
    done = run(str(path))
    assert done.status == 2
    assert done.err.count("\n") == 1
