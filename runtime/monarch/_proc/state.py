"""What the kernel says of a process of this host."""

from __future__ import annotations

import os
import time

_ENDED = {b"Z", b"X", b"x"}
_EXITING = 4  # a flag of the kernel's


def is_stopped(pid: int) -> bool:
    """Whether a process has been stopped by a signal, or by a debugger."""
    return _stat(pid)[0] in {b"T", b"t"}


def is_ending(pid: int) -> bool:
    """Whether a process is on its way out, which takes long where its threads get no time."""
    stat = _stat(pid)
    return stat[0] in _ENDED or bool(int(stat[6]) & _EXITING)


def has_ended(pid: int) -> bool:
    """Whether a process is no more, or is only waited for by its parent."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return is_ending(pid)


def reap(pid: int, timeout: float) -> int | None:
    """The wait status of a child, 0 if somebody else took it; None if it lives after `timeout`."""
    end = time.monotonic() + timeout
    pause = 0.0002
    while True:
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        if found:
            return status
        if time.monotonic() >= end:
            return None
        time.sleep(pause)
        pause = min(pause * 2, 0.01)


def _stat(pid: int) -> list[bytes]:
    """State, parent, … of a process, as in proc(5) from the third field on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return [b"?", *[b"0"] * 8]
    return text.rpartition(b")")[2].split()
