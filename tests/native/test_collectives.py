"""Collectives between processes: the module, the bridge and a stand-in that reduces for real."""

from __future__ import annotations

import contextlib
import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from tests.native.harness import PROGRAMS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

DTYPES = ("int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
CHUNK = 1 << 18  # of the stand-in: more than one makes it go round


class Ranks:
    """Running processes, one a rank."""

    def __init__(self, processes: list[subprocess.Popen[str]]) -> None:
        self.processes = processes

    def ask(self, name: str, *arguments: Any, ranks: list[int] | None = None) -> list[Any]:
        chosen = [self.processes[rank] for rank in ranks or range(len(self.processes))]
        for process in chosen:
            assert process.stdin is not None
            process.stdin.write(json.dumps([name, *arguments]) + "\n")
            process.stdin.flush()
        return [self.answer(process) for process in chosen]

    @staticmethod
    def answer(process: subprocess.Popen[str]) -> Any:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        return json.loads(line)


@contextlib.contextmanager
def world(package: Any, size: int) -> Iterator[Ranks]:
    program = PROGRAMS / "collectives.py"
    processes = [package.start(program, str(rank), str(size)) for rank in range(size)]
    try:
        unique_id = processes[0].stdout.readline()
        for process in processes[1:]:
            process.stdin.write(unique_id)
            process.stdin.flush()
        yield Ranks(processes)
        for process in processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in processes:
            process.wait(timeout=60)
    finally:
        for process in processes:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@pytest.fixture(scope="module", params=[2, 3])
def ranks(request, package):
    with world(package, request.param) as running:
        yield running


def values(rank: int, count: int) -> list[int]:
    return [(rank + 1) * (at % 5) + rank for at in range(count)]


def columns(size: int, count: int) -> list[tuple[int, ...]]:
    return list(zip(*(values(rank, count) for rank in range(size)), strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_reduce_sums_every_element_type(ranks, dtype):
    size = len(ranks.processes)
    expected = [sum(column) for column in columns(size, 12)]
    assert ranks.ask("all_reduce", dtype, "sum", 12) == [expected] * size


@pytest.mark.parametrize(
    ("reduction", "function"),
    [
        ("product", math.prod),
        ("maximum", max),
        ("minimum", min),
        ("average", lambda column: sum(column) / len(column)),
    ],
)
def test_all_reduce_knows_every_reduction(ranks, reduction, function):
    size = len(ranks.processes)
    expected = [function(column) for column in columns(size, 10)]
    for answer in ranks.ask("all_reduce", "float64", reduction, 10):
        assert answer == pytest.approx(expected)


def test_more_than_one_chunk_is_reduced(ranks):
    size, count = len(ranks.processes), CHUNK // 4 + 17
    expected = [sum(column) for column in columns(size, count)]
    assert ranks.ask("all_reduce", "int32", "sum", count) == [expected] * size


def test_all_gather_puts_the_ranks_in_order(ranks):
    size = len(ranks.processes)
    expected = [value for rank in range(size) for value in values(rank, 7)]
    assert ranks.ask("all_gather", 7) == [expected] * size


def test_reduce_scatter_gives_each_rank_its_part(ranks):
    size = len(ranks.processes)
    total = [sum(column) for column in columns(size, 6 * size)]
    parts = [total[rank * 6 : rank * 6 + 6] for rank in range(size)]
    assert ranks.ask("reduce_scatter", 6) == parts


def test_broadcast_copies_the_root(ranks):
    size = len(ranks.processes)
    assert ranks.ask("broadcast", size - 1, 9) == [values(size - 1, 9)] * size


def test_reduce_reaches_the_root_alone(ranks):
    size = len(ranks.processes)
    expected = [sum(column) for column in columns(size, 5)]
    answers = ranks.ask("reduce", 1, 5)
    assert answers[1] == expected
    assert answers[0] == [-1] * 5


def test_a_group_sends_and_receives_at_once(ranks):
    size = len(ranks.processes)
    count = (1 << 16) + 3  # more than a mailbox holds
    expected = [values((rank - 1) % size, count) for rank in range(size)]
    assert ranks.ask("ring", count) == expected


def test_split_orders_by_key_and_keeps_colours_apart(ranks):
    size = len(ranks.processes)
    for rank, (place, part_size, total) in enumerate(ranks.ask("split_sum")):
        members = [other for other in range(size) if other % 2 == rank % 2]
        assert part_size == len(members)
        assert place == sorted(members, reverse=True).index(rank)
        assert total == sum(members)


def test_a_rank_without_a_colour_gets_no_part(ranks):
    size = len(ranks.processes)
    expected = ["none", *(f"{rank - 1} of {size - 1}" for rank in range(1, size))]
    assert ranks.ask("sit_out") == expected


def test_survivors_learn_of_a_lost_rank_and_get_away(package):
    with world(package, 3) as running:
        running.ask("all_reduce", "int32", "sum", 1)
        lost = running.processes[2]
        lost.kill()
        lost.wait()
        assert running.ask("lost", ranks=[0, 1]) == ["peer_failed", "peer_failed"]


def test_abort_ends_an_operation_that_waits_for_a_rank(package):
    with world(package, 2) as running:
        running.ask("all_reduce", "int32", "sum", 1)
        assert running.ask("abort_stuck", ranks=[0]) == ["False True"]


def test_a_missing_library_names_what_was_tried_and_what_to_install(package, tmp_path):
    driver = next(package.libraries.glob("lib[ac][mu]d*"))
    (tmp_path / driver.name).symlink_to(driver)
    alone = package.with_environment(LD_LIBRARY_PATH=str(tmp_path), ROCM_PATH=str(tmp_path))
    text = alone.run(
        "from monarch import gpu\n"
        "try:\n    print('found', *gpu.collectives_library())\n"
        "except gpu.GpuError as error:\n    print(error.code, error)\n"
    )
    if text.startswith("found"):
        pytest.skip("this machine has the genuine library")
    name = "libnccl.so.2" if package.platform == "cuda" else "librccl.so.1"
    assert text.startswith("library_missing")
    assert f"{name} was not found" in text
    assert "install" in text


def test_wrong_arguments_are_refused_before_the_library_sees_them(package):
    text = package.run(
        """
from monarch import gpu

def code(call):
    try:
        call()
    except gpu.GpuError as error:
        return error.code

unique_id = gpu.Communicator.unique_id()
with gpu.Communicator.create(0, unique_id, 0, 1) as communicator, gpu.device(0).stream() as stream:
    memory = gpu.device(0).allocate(8)
    print(code(lambda: communicator.all_reduce(memory, memory, "int32", count=3, stream=stream)))
    print(code(lambda: communicator.all_reduce(memory, memory, "complex", stream=stream)))
    print(code(lambda: communicator.all_reduce(memory, memory, "int8", "xor", stream=stream)))
    print(code(lambda: communicator.broadcast(memory, "int8", 1, stream=stream)))
    print(code(lambda: gpu.Communicator.create(0, unique_id[:5], 0, 1)))
    print(code(lambda: gpu.Communicator.create(0, unique_id, 1, 1)))
print(code(communicator.check))
"""
    )
    assert text.split() == ["invalid_argument"] * 7
