"""V16: RECORD lists every file with its true hash and size (PEP 376, PEP 427)."""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
from typing import TYPE_CHECKING

from port.text import counted
from port.verify.archive import unsafe
from port.verify.case import listing
from port.verify.report import failed, passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.verify.case import Case
    from port.verify.contents import Contents, File
    from port.verify.report import Check

_SIGNATURES = ("RECORD.jws", "RECORD.p7s")
_WEAK = ("md5", "sha1", "sha224")
_UNHASHED_WHEN_INSTALLED = {"INSTALLER", "REQUESTED", "direct_url.json"}
_AGAIN = "write RECORD again after the last change (wheel pack, or auditwheel repair)"


def record(case: Case) -> Iterator[Check]:
    """V16: full verification of RECORD."""
    contents = case.contents
    if contents.dist_info is None:
        if contents.kind == "wheel":
            yield failed("V16", "no dist-info folder, so no RECORD", _AGAIN)
        else:
            yield passed("V16", "no RECORD to hold it to")
        return
    name = f"{contents.dist_info}/RECORD"
    data = contents.dist_text("RECORD")
    if data is None:
        yield failed("V16", "RECORD is missing", _AGAIN, contents.dist_info)
        return
    try:
        rows = list(csv.reader(data.decode("utf-8").splitlines(), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        yield failed("V16", f"RECORD cannot be read: {error}", _AGAIN, name)
        return
    wrong = list(_problems(contents, rows, name))
    for file, detail in wrong[:100]:
        yield failed("V16", detail, _AGAIN, file)
    if len(wrong) > 100:
        yield failed("V16", counted(len(wrong) - 100, "more problem"), _AGAIN, name)
    if not wrong:
        signed = [s for s in _SIGNATURES if f"{contents.dist_info}/{s}" in contents.files]
        told = f"; it is signed ({listing(signed)}), signatures are not checked" if signed else ""
        yield passed("V16", f"{counted(len(rows), 'file')} as RECORD says{told}")


def _problems(
    contents: Contents, rows: list[list[str]], record_name: str
) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for number, row in enumerate(rows, 1):
        if len(row) != 3:
            yield record_name, f"line {number} of RECORD has {counted(len(row), 'field')}, wanted 3"
            continue
        path, hashed, size = row
        if path in seen:
            yield path, "RECORD lists it twice"
            continue
        seen.add(path)
        bad = unsafe(path)
        if bad and not (contents.kind == "distribution" and path.startswith("../")):
            yield path, f"RECORD's path {bad}"
        elif path not in contents.files:
            if contents.kind != "distribution" or not path.endswith(".pyc"):
                yield path, "RECORD lists it, but it is not there"
        else:
            yield from _compare(contents, contents.files[path], hashed, size)
    if contents.kind != "distribution":
        free = {record_name, *(f"{contents.dist_info}/{name}" for name in _SIGNATURES)}
        for path in contents.files:
            if path not in seen and path not in free:
                yield path, "it is not in RECORD"


def _compare(contents: Contents, file: File, hashed: str, size: str) -> Iterator[tuple[str, str]]:
    last = file.name.rpartition("/")[2]
    inside = file.name.rpartition("/")[0] == contents.dist_info
    if not hashed:
        free = {"RECORD", *_SIGNATURES}
        if contents.kind == "distribution":
            free |= _UNHASHED_WHEN_INSTALLED
        if not (inside and last in free):
            yield file.name, "RECORD has no hash for it"
        return
    algorithm, _, wanted = hashed.partition("=")
    if algorithm in _WEAK or algorithm not in hashlib.algorithms_guaranteed or "shake" in algorithm:
        yield file.name, f"RECORD's hash is {algorithm or 'empty'}, wanted sha256 or stronger"
        return
    try:
        expected = base64.b64decode(
            wanted + "=" * (-len(wanted) % 4), altchars=b"-_", validate=True
        )
    except (binascii.Error, ValueError):
        yield file.name, f"RECORD's hash {hashed!r} is not URL-safe base64"
        return
    found = bytes.fromhex(file.sha256) if algorithm == "sha256" else file.digest(algorithm)
    if found != expected:
        yield file.name, f"its {algorithm} is not the one that RECORD has"
    if size and (not size.isdecimal() or int(size) != file.size):
        yield file.name, f"it has {file.size} bytes, RECORD says {size}"
