"""Damaged ELF files never crash, hang or bloat the reader."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from port.errors import InputError, LimitError
from port.verify import child
from port.verify.child import ElfReader
from tests.port.verify import elf_writer as w
from tests.port.verify.commands import run

SEED = 20250101
BASES = (
    w.cuda_module(runpath="$ORIGIN", soname="a.so"),
    w.hip_module(rpath="$ORIGIN"),
    w.hip_module(device={".hip_fatbin": w.packed_bundle(w.bundle("gfx90a"))}),
)


def mutants(count):
    """Damaged copies: flipped bytes, extreme numbers, moved blocks, cut ends."""
    chance = random.Random(SEED)  # noqa: S311 - damage, not secrets
    extremes = [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\1\0\0\0"]
    for _ in range(count):
        data = bytearray(chance.choice(BASES))
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = chance.randrange(len(data) - 4)
            kind = chance.randrange(4)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                data[at : at + 4] = chance.choice(extremes)
            elif kind == 2:
                size = chance.randrange(1, 64)
                other = chance.randrange(len(data))
                data[at : at + size] = data[other : other + size]
            else:
                del data[chance.randrange(48, len(data)) :]
                data += bytes(32)
        yield bytes(data)


def read(reader, data):
    descriptor = os.memfd_create("mutant")
    try:
        os.write(descriptor, data)
        return reader.read(descriptor, "mutant")
    finally:
        os.close(descriptor)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.promise("B02")
def test_ten_thousand_mutants_end_in_facts_or_one_line():
    messages = []
    with ElfReader() as reader:
        first = reader.pid
        for data in mutants(10_000):
            try:
                read(reader, data)
            except InputError as error:
                messages.append(str(error))
        assert reader.pid == first
    assert not any("\n" in message for message in messages)
    assert 1000 < len(messages) < 9000


@pytest.mark.promise("B02")
@pytest.mark.parametrize(("step", "refused"), [(0, False), (1, True), (16, True)])
def test_endless_chain_of_version_needs_ends_at_once(step, refused, tmp_path):
    """Four billion entries are announced; each leads to itself, or a step on to no end."""
    data = w.elf(chain=(0xFFFFFFFF, step))
    path = tmp_path / "a.so"
    path.write_bytes(data)
    started = time.process_time()
    done = run(str(path), "--platform", "cpu")
    assert time.process_time() - started < 2
    assert done.status == (2 if refused else 0)
    assert done.err.count("\n") == refused
    done = run(str(w.wheel(tmp_path, {"demo/_C.so": data})))
    assert done.status == (1 if refused else 0)
    assert ("error   V20" in done.out) == refused


@pytest.mark.promise("B02")
def test_child_that_stands_still_is_ended_and_replaced():
    with ElfReader(wall_seconds=0.5) as reader:
        read(reader, BASES[0])
        before = reader.pid
        os.kill(before, signal.SIGSTOP)
        with pytest.raises(LimitError, match=r"more than 0\.5 s"):
            read(reader, BASES[0])
        with pytest.raises(ProcessLookupError):
            os.kill(before, 0)
        assert read(reader, BASES[0]).machine == "EM_X86_64"


@pytest.mark.promise("B02")
def test_child_that_dies_is_told_and_replaced():
    with ElfReader() as reader:
        read(reader, BASES[0])
        os.kill(reader.pid, signal.SIGXCPU)
        with pytest.raises(LimitError, match="CPU time"):
            read(reader, BASES[0])
        assert read(reader, BASES[0]).kind == "ET_DYN"


@pytest.mark.promise("B02")
def test_child_runs_under_its_limits():
    with ElfReader() as reader:
        read(reader, BASES[0])
        lines = Path(f"/proc/{reader.pid}/limits").read_text(encoding="ascii").splitlines()
        limits = {line[:26].strip(): line[26:].split()[0] for line in lines}
    assert int(limits["Max address space"]) == 512 << 20
    assert int(limits["Max cpu time"]) <= 7
    assert limits["Max core file size"] == "0"


def test_limit_of_one_member_ends_the_verdict_with_exit_3(tmp_path, monkeypatch):
    path = w.wheel(tmp_path, {"demo/_C.so": w.cpu_module()})
    with ElfReader(wall_seconds=0.5) as reader:
        read(reader, BASES[0])
        monkeypatch.setattr(child, "_shared", [reader])
        os.kill(reader.pid, signal.SIGSTOP)
        done = run(str(path))
    assert done.status == 3
    assert "demo/_C.so" in done.err
    assert done.err.count("\n") == 1
