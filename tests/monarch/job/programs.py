"""Programs that the tests of jobs run beside themselves, and actors for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from monarch.actor import Actor, current_rank, endpoint


class Who(Actor):
    """Tells where it is."""

    @endpoint
    def pid(self) -> int:
        return os.getpid()

    @endpoint
    def agent(self) -> int:
        """The host agent that this process is of: the parent of its zygote."""
        return parent(os.getppid())

    @endpoint
    def variable(self, name: str) -> str | None:
        return os.environ.get(name)

    @endpoint
    def say(self, text: str) -> None:
        print(text)  # noqa: T201 - what it is for

    @endpoint
    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    @endpoint
    def ask(self, other) -> int:
        return other.pid.call_one().get(60)

    @endpoint
    def spawn_on(self, hosts) -> list[int]:
        self.kept = hosts.spawn_procs(per_host={"gpus": 2})
        return list(self.kept.spawn("inner", Who).pid.call().get(60).values())

    @endpoint
    def place(self) -> dict[str, int]:
        return dict(current_rank())


def start(code: str, *arguments: str, variables=None, **options) -> subprocess.Popen:
    """A Python program with the modules of this one."""
    path = os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path]))
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **(variables or {})},
        **options,
    )


def lives(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in {"Z", "X"}


def gone(pids, seconds: float) -> bool:
    """Whether all of these processes end within this time."""
    end = time.monotonic() + seconds
    while any(lives(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def parent(pid: int) -> int:
    """A process's parent."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return int(text.rpartition(")")[2].split()[1])


def children(pid: int) -> list[int]:
    """A process's children and theirs."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text(encoding="ascii").split()):
            found += [child, *children(child)]
    return found
