"""A program that starts others and adopts what they leave; all of it ends with its input.

It is run by its path, apart from everything: each line is JSON, a command and variables for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_SET_CHILD_SUBREAPER = 36


def descendants(pid: int) -> list[int]:
    """A process's children, and theirs."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text(encoding="ascii").split()):
                found += [child, *descendants(child)]
    return found


def parent(pid: int) -> int:
    """The parent of a process; 0 where it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def kill(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def main() -> None:
    """Start a program for each line that is read, and kill all at the end of the input."""
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    source = sys.stdin.buffer.fileno()
    rest = b""
    while True:
        ready, _, _ = select.select([source], [], [], 0.2)
        _reap()
        if not ready:
            continue
        data = os.read(source, 65536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            command, variables = json.loads(line)
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **variables},
                start_new_session=True,
            )
    while left := descendants(os.getpid()):
        for pid in left:
            kill(pid, signal.SIGKILL)
        time.sleep(0.01)
        _reap()


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main()
