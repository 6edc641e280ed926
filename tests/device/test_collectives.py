"""Collectives of the vendor's library, a process for each GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from monarch import gpu

PROGRAM = Path(__file__).resolve().parents[1] / "native/programs/collectives.py"


@pytest.fixture(scope="module")
def processes():
    try:
        gpu.collectives_library()
    except gpu.GpuError as error:
        pytest.skip(str(error))
    size = len(gpu.devices())
    started = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(rank), str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    unique_id = started[0].stdout.readline()
    for process in started[1:]:
        process.stdin.write(unique_id)
        process.stdin.flush()
    yield started
    for process in started:
        process.stdin.close()
    for process in started:
        process.wait(timeout=60)
        process.stdout.close()


def ask(processes, name, *arguments):
    for process in processes:
        process.stdin.write(json.dumps([name, *arguments]) + "\n")
        process.stdin.flush()
    return [json.loads(process.stdout.readline()) for process in processes]


def values(rank, count):
    return [(rank + 1) * (at % 5) + rank for at in range(count)]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_all_reduce(processes, dtype):
    size = len(processes)
    columns = zip(*(values(rank, 12) for rank in range(size)), strict=True)
    expected = [sum(column) for column in columns]
    assert ask(processes, "all_reduce", dtype, "sum", 12) == [expected] * size


def test_all_gather_and_broadcast(processes):
    size = len(processes)
    gathered = [value for rank in range(size) for value in values(rank, 7)]
    assert ask(processes, "all_gather", 7) == [gathered] * size
    assert ask(processes, "broadcast", size - 1, 9) == [values(size - 1, 9)] * size


def test_reduce_scatter(processes):
    size = len(processes)
    columns = zip(*(values(rank, 6 * size) for rank in range(size)), strict=True)
    total = [sum(column) for column in columns]
    parts = [total[rank * 6 : rank * 6 + 6] for rank in range(size)]
    assert ask(processes, "reduce_scatter", 6) == parts


def test_a_ring_of_sends_and_receives(processes):
    size = len(processes)
    if size < 2:
        pytest.skip("one GPU has nobody to send to")
    expected = [values((rank - 1) % size, 1000) for rank in range(size)]
    assert ask(processes, "ring", 1000) == expected
