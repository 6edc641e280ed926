"""RECORD: every way it can be wrong."""

from __future__ import annotations

import base64
import hashlib

import pytest

from port.verify import verify
from tests.port.verify import elf_writer as w

RECORD = "demo-1.0.dist-info/RECORD"


def urlsafe(digest):
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def replaced(old, new):
    def change(files):
        text = files[RECORD].decode()
        assert old in text
        files[RECORD] = text.replace(old, new).encode()

    return change


def line(name=b"x = 1\n"):
    return w.record_line("demo/a.py", name)


def hashed(algorithm):
    digest = urlsafe(hashlib.new(algorithm, b"x = 1\n").digest())
    return replaced(line(), f"demo/a.py,{algorithm}={digest},6\n")


def unlisted(files):
    files["demo/b.py"] = b""


def removed(files):
    del files["demo/a.py"]


def no_record(files):
    del files[RECORD]


def latin(files):
    files[RECORD] += b"\xff\xfe,,\n"


WRONG = {
    "missing": (unlisted, "demo/b.py", "it is not in RECORD"),
    "extra": (removed, "demo/a.py", "it is not there"),
    "hash": (replaced(line(), line(b"y = 1\n")), "demo/a.py", "is not the one that RECORD has"),
    "size": (replaced(line(), line().replace(",6\n", ",7\n")), "demo/a.py", "it has 6 bytes"),
    "no size": (replaced(line(), line().replace(",6\n", ",six\n")), "demo/a.py", "says six"),
    "md5": (hashed("md5"), "demo/a.py", "wanted sha256"),
    "sha1": (hashed("sha1"), "demo/a.py", "wanted sha256"),
    "unknown": (replaced("sha256=", "crc="), "demo/a.py", "wanted sha256"),
    "no hash": (replaced(line(), "demo/a.py,,6\n"), "demo/a.py", "no hash"),
    "not base64": (replaced(line(), "demo/a.py,sha256=!!,6\n"), "demo/a.py", "base64"),
    "twice": (replaced(line(), line() * 2), "demo/a.py", "twice"),
    "fields": (replaced(line(), line() + "demo/b.py\n"), RECORD, "has 1 field, wanted 3"),
    "absolute": (replaced(line(), line() + "/etc/passwd,,\n"), "/etc/passwd", "is absolute"),
    "dots": (replaced(line(), line() + "../x,,\n"), "../x", "'..'"),
    "none": (no_record, "demo-1.0.dist-info", "RECORD is missing"),
    "encoding": (latin, RECORD, "cannot be read"),
}


def verdict(folder, change):
    path = w.wheel(folder, {"demo/a.py": b"x = 1\n"}, tag="py3-none-any", change=change)
    return [check for check in verify(path).checks if not check.ok]


@pytest.mark.promise("B05")
@pytest.mark.parametrize("kind", sorted(WRONG))
def test_wrong_record_is_an_error_of_v16_alone(kind, tmp_path):
    change, file, words = WRONG[kind]
    found = verdict(tmp_path, change)
    assert {check.code for check in found} == {"V16"}
    assert any(check.file == file and words in check.detail for check in found)


@pytest.mark.promise("B05")
@pytest.mark.parametrize("algorithm", ["sha384", "sha512"])
def test_stronger_hashes_are_accepted(algorithm, tmp_path):
    assert verdict(tmp_path, hashed(algorithm)) == []


@pytest.mark.promise("B05")
def test_signature_may_be_absent_from_record_and_is_told(tmp_path):
    def change(files):
        files["demo-1.0.dist-info/RECORD.jws"] = b"{}"

    path = w.wheel(tmp_path, {"demo/a.py": b"x = 1\n"}, tag="py3-none-any", change=change)
    (check,) = [check for check in verify(path).checks if check.code == "V16"]
    assert check.ok
    assert "signatures are not checked" in check.detail


@pytest.mark.promise("B05")
def test_flood_of_wrong_lines_is_cut(tmp_path):
    def change(files):
        files[RECORD] += b"".join(b"gone/%d.py,,\n" % n for n in range(5000))

    found = verdict(tmp_path, change)
    assert len(found) == 101
    assert "4900 more" in found[-1].detail
