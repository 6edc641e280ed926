from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from monarch._proc.boards import LINE, NO_PAGE, PAGE, Boards, read_page

pytestmark = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="this system has no files in memory"
)


@pytest.fixture
def boards():
    made = Boards(most=2)
    yield made
    made.close()


def write(boards, page, line, since, actor, name):
    """A line as the engine of a process writes it."""
    data = struct.pack("<QQ", since, actor) + name.encode() + b"\0"
    os.pwrite(boards.fileno(), data, page * PAGE + line * LINE)


@pytest.mark.report("80")
def test_what_a_process_handles_is_read_oldest_first(boards):
    page = boards.take(5)
    write(boards, page, 0, 3_000_000_000, 7, "train_step")
    write(boards, page, 4, 2_000_000_000, 8, "load")
    assert [(r.actor, r.endpoint, r.since) for r in boards.read(5)] == [
        (8, "load", 2.0),
        (7, "train_step", 3.0),
    ]


def test_a_page_is_clean_when_it_is_used_again(boards):
    page = boards.take(5)
    write(boards, page, 0, 1, 7, "x" * 20)
    boards.give_back(5)
    assert boards.read(5) == []
    assert boards.take(6) == page
    assert boards.read(6) == []


def test_more_processes_than_pages_do_without(boards):
    assert [boards.take(n) for n in (1, 2, 3)] == [0, 1, NO_PAGE]
    boards.give_back(3)
    assert boards.read(3) == []


def open_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_nothing_is_open_after_the_end():
    before = open_descriptors()
    boards = Boards()
    boards.take(1)
    assert open_descriptors() == before + 2
    boards.close()
    assert open_descriptors() == before


def test_bytes_that_are_no_text_harm_nothing():
    page = struct.pack("<QQ", 1, 2) + b"\xff" * (LINE - 16) + bytes(PAGE - LINE)
    (line,) = read_page(page)
    assert line.actor == 2
    assert len(line.endpoint) == LINE - 16
