from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from monarch.testing.leaks import Snapshot, descendants, leaks

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="this system has no /proc to look in"
)


def test_nothing_new_is_no_leak():
    assert leaks(Snapshot(), 0) == []


def test_a_descriptor_that_stays_open_is_named():
    before = Snapshot()
    fd = os.open("/dev/zero", os.O_RDONLY)
    try:
        assert leaks(before, 0) == [f"descriptor {fd}: /dev/zero"]
    finally:
        os.close(fd)
    assert leaks(before, 0) == []


def test_a_descriptor_that_was_replaced_by_another_is_named():
    fd = os.open("/dev/zero", os.O_RDONLY)
    before = Snapshot()
    os.close(fd)
    again = os.open("/dev/null", os.O_RDONLY)
    try:
        assert leaks(before, 0) == [f"descriptor {again}: /dev/null"]
    finally:
        os.close(again)


def test_a_thread_that_stays_is_named():
    before = Snapshot()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        (line,) = leaks(before, 0)
        assert line.startswith(f"thread {thread.native_id}: ")
    finally:
        end.set()
        thread.join()


def test_a_process_is_named_with_its_command_and_as_ended_until_it_is_reaped():
    before = Snapshot()
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    lines = [line for line in leaks(before, 0) if line.startswith("process")]
    assert len(lines) == 1
    assert lines[0].startswith(f"process {child.pid}: ")
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert dict(descendants(os.getpid()))[child.pid].endswith(", ended and not reaped]")
    child.wait()
    assert leaks(before, 0) == []


def test_temporary_files_of_ours_are_named_and_others_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = Snapshot()
    with (
        tempfile.NamedTemporaryFile(prefix="monarch-test-") as ours,
        tempfile.NamedTemporaryFile(prefix="other-"),
    ):
        lines = [line for line in leaks(before, 0) if line.startswith("temporary file")]
        assert lines == [f"temporary file {Path(ours.name).name}: {ours.name}"]


def test_what_goes_away_in_time_is_no_leak():
    before = Snapshot()
    fd = os.open("/dev/zero", os.O_RDONLY)
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            os.close(fd)

    assert leaks(before, 60, sleep) == []
    assert len(pauses) == 3
    assert pauses == sorted(pauses)
