"""Device code and ELF facts, against containers made here and against real tools' output."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from port.verify import elf, zstd
from port.verify.fatbin import read_fatbin
from port.verify.offload import read_bundles
from tests.port.verify import elf_writer as w

# What a zstd library makes of a bundle for gfx90a and gfx942 (level 19), and of `TEXT` (level 9).
ZSTD_BUNDLE = (
    "KLUv/WCAAM0DALIFFhpgeQNUEpuY5jaWBMCP2DuOhZ0wF3cNw4yUAVIC9jJhLGbFxJEnqhtz1UeUlOGe32YNtTt7b2"
    "H9oPbXez2pUyN3x2mVEGUM3Jm7OFDiC/Jcax9vHOQq7gEMADYEFORGZjhpRKvL3QKV5eAx4MRWvfG6AhxsBsY="
)
TEXT = b"".join(
    b"%d %s\n" % (n, hashlib.sha256(b"%d" % n).hexdigest()[: n % 9].encode()) for n in range(220)
) * 2 + bytes(300)
ZSTD_TEXT = (
    "KLUv/WC0Dm0fAKpmeA0QoDUPrd+qkrWUKyQP+tU6f88A0wDTAOlCwQkKb+mBpI5eaU0ddUqHMnSBphVfdN0D2q7oJ/"
    "pGojEVjmi6QALEHzrIgBduaCxR7oU2IssJLQhdnM34nsPD+XoeaYR1xPOMRWl0j+dg3NHgdxaBMHM7myLmdUbT0znv"
    "wpxf84OZyMBAnLyaw2qOQJ5m0jwLjuZx8vJnPrnhZsajL3Oek1lclL/lQ5hniQ/loseEItfyOMLUPMsjWO6xTMq5Xz"
    "mJ3soHX2U8lS9sZ2ga2NdCqJEID6ZATzBXV7FjnjYjeDQZ/BnLzfryKSqKLV6pLMyl1VOPySMl/qi84W5U1npReZyE"
    "gwZEirCv8EDbouVBONgoEq7CZ7GMp7CWM0dhNPoTtr0J10v4JEzDEAoluFgbQijIftdXrBTysBYBHl7XKJA817gm5L"
    "cet/VrjTUE4uJpHci4seIiuDAQeN/gMHbHQ7DBcK7BeucZTMwxWPyCb8GhXJqd8Ao2o0aecwpWEmQILtS5ZeMr8EFd"
    "xl3VVE/1OKp/6nM0ltTe1EflpTZiHHEntTBl7iK9ZPpN3wYPaQ3XND3Tx3SVoGyu/QK6qoS8tGykWOU4aZkEgZ1zke"
    "WzxYRvhrI5dLVnluuY5Z8qHdKt1Owry4WYGeJURtKFBeaLZSv1gOVB1yeWj1g2FQI6Wn5YziOMwTJmCYG9zCBlL648"
    "tHyvvOXhyne98jOP2Ct5vMVj5XdlU4qQcruyGIExr7J3urqwr5XFg5WvVg53x+yhp5XNKOcMPVoZR6qOHxlSNyuPIf"
    "ZlZTLsZGW6i2+VH6qso3RJmmuVg2BGWXtWuYiDVd7UQH9Vzixyq7LR86oyEacq0wVRmRA7incPVA4BgLHuIr9lrocy"
    "Xwdt6pZnmZUEMdrj+ZU5EBvnVmY8Qa8yCyunMt9ekJGawRPklcxnCNo9TzKTohmcI5mDMjWbUMHt8EVGJES5AiQkIP"
    "sgyoiGECRXMU6ppygHIjMcxZaPmJsoU3iJsp3Elg0hpbTlo2Jk72HLGKrWrls2G6XPLdexPG55LPmR25bzteXTlgsd"
    "roZySMxS9A3lSivBPoTy2iDBNYzyDHgM5YG/UNZbKL9CWWSgQiFNyHOh5RJcQPstFx60TIfMVcsZkKeWzx31tHwLNy"
    "gQEoTQCOkDEYCf/f//jzEooIqgj86CUcW0GHldAt/yezDhzHc4buFlUfjbhWkgwdWAlhABw1riiHLgumgSMa8zHcTu"
    "CcHAZtCVbCdsaKjMNa7YdFYnKX+vNqwwMajIHSK+HaYDLO14TiSOMpiApRjqcpY8FUohN5K+MwcGP42iICll3FVy13"
    "VrCg=="
)


def reader(data):
    return lambda at, size: data[at : at + size]


def architectures(read, data):
    found = read(reader(data), len(data))
    assert found.problems == []
    return found.architectures


@pytest.mark.parametrize("packed", [False, True])
def test_entries_of_a_fat_binary_are_named(packed):
    names = ["sm_80", "sm_90a", "sm_100f", "compute_90", "lto_90"]
    assert architectures(read_fatbin, w.fatbin(*names, packed=packed)) == names


def test_containers_follow_each_other_with_padding():
    data = w.fatbin("sm_80") + bytes(8) + w.fatbin("sm_90", "sm_80") + bytes(3)
    assert architectures(read_fatbin, data) == ["sm_80", "sm_90"]


@pytest.mark.parametrize("cut", [20, 40, 100])
def test_cut_fat_binary_is_a_problem(cut):
    data = w.fatbin("sm_80", "sm_90")[:cut]
    assert read_fatbin(reader(data), len(data)).problems


def test_entries_of_a_bundle_are_named_with_their_features():
    names = ["gfx90a:sramecc+:xnack-", "gfx942", "gfx9-4-generic"]
    assert architectures(read_bundles, w.bundle(*names)) == names


def test_bundles_follow_each_other_with_padding():
    data = w.bundle("gfx90a") + bytes(4000) + w.bundle("gfx942")
    assert architectures(read_bundles, data) == ["gfx90a", "gfx942"]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_packed_bundles_of_all_versions_are_unpacked(version):
    data = w.packed_bundle(w.bundle("gfx90a", "gfx950"), version=version)
    assert architectures(read_bundles, data * 2) == ["gfx90a", "gfx950"]


def test_bundle_packed_by_zstd_is_read():
    frame = base64.b64decode(ZSTD_BUNDLE)
    data = w.packed_bundle(w.bundle("gfx90a", "gfx942"), pack=lambda _: frame, method=1)
    assert architectures(read_bundles, data) == ["gfx90a", "gfx942"]


@pytest.mark.parametrize("room", [1, 100, 1000, 1 << 20])
def test_head_of_a_zstd_frame_is_what_was_packed(room):
    assert zstd.unpack_head(base64.b64decode(ZSTD_TEXT), room) == TEXT[:room]


def test_packed_bundle_that_cannot_be_unpacked_is_told_and_no_problem():
    data = w.packed_bundle(w.bundle("gfx90a"), method=9)
    found = read_bundles(reader(data), len(data))
    assert found.architectures == []
    assert found.problems == []
    assert "not known" in found.notes[0]


@pytest.mark.parametrize("cut", [30, 60, 200])
def test_cut_bundle_is_a_problem(cut):
    data = w.bundle("gfx90a", "gfx942")[:cut]
    assert read_bundles(reader(data), len(data)).problems


@given(st.binary(max_size=400))
def test_any_bytes_give_an_answer(data):
    for read, front in ((read_fatbin, b"\x50\xed\x55\xba"), (read_bundles, b"CCOB\2\0\1\0")):
        for text in (data, front + data):
            read(reader(text), len(text))


@given(st.binary(max_size=300))
def test_any_bytes_behind_the_magic_give_bytes_or_a_zstd_error(data):
    with contextlib.suppress(zstd.ZstdError):
        assert len(zstd.unpack_head(zstd.MAGIC + data, 100)) <= 100


def test_real_compilers_output_is_read_as_readelf_reads_it(tmp_path):
    source = tmp_path / "c.cpp"
    source.write_text(
        "#include <stdexcept>\n#include <cmath>\n"
        'extern "C" double f(double x) { if (x < 0) throw std::runtime_error("x"); '
        "return std::pow(x, x); }\n",
        encoding="utf-8",
    )
    library = tmp_path / "libf.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-Wl,-soname,libf.so.1", "-Wl,--enable-new-dtags",
         "-Wl,-rpath,$ORIGIN/x", "-o", library, source],
        check=True, capture_output=True,
    )  # fmt: skip
    facts = elf.read(io.BytesIO(library.read_bytes()))

    def readelf(*options):
        done = subprocess.run(["readelf", "-W", *options, library], check=True, capture_output=True)
        return done.stdout.decode()

    dynamic = readelf("-d")
    assert list(facts.needed) == [
        line.split("[")[1].split("]")[0] for line in dynamic.splitlines() if "(NEEDED)" in line
    ]
    assert facts.soname == "libf.so.1"
    assert facts.runpath == "$ORIGIN/x"
    rows = [line.split() for line in readelf("--dyn-syms").splitlines() if "UND" in line][1:]
    names = {row[7].partition("@")[0] for row in rows}
    assert {u.name for u in facts.undefined} == names
    versions = readelf("-V")
    for u in facts.undefined:
        if u.version:
            assert f"Name: {u.version}" in versions
            assert f"File: {u.file}" in versions
    assert "f" in facts.exported
    assert facts.stack is False
