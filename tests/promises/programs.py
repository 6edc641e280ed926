"""Programs that run on their own, as users start them, and what is left of them afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from monarch.testing.leaks import descendants
from tests.watching import alive

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "runtime"), str(ROOT)]),
    "PYTHONUNBUFFERED": "1",
}


class Client:
    """A program that runs on its own; its lines are read as they come."""

    def __init__(self, body: str) -> None:
        code = HEAD + body
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        self.below: dict[int, str] = {}

    def line(self) -> str:
        """Its next line; what runs below it is looked at then."""
        found = self.process.stdout.readline().strip()
        self.below.update(descendants(self.process.pid))
        return found

    def end(self, timeout: float = 60) -> tuple[int, str, str]:
        """Its status and what it said from here on."""
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def left(self, timeout: float = 1.0) -> list[int]:
        """Which of the processes that ran below it are there after `timeout` seconds."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            left = [pid for pid in self.below if alive(pid)]
            if not left:
                return []
            time.sleep(0.01)
        return left


HEAD = """
import os, signal, sys, threading, time
import monarch.actor
from monarch.actor import context, shutdown_context, this_host, this_proc
from tests.promises.actors import Manager, Mortal

def start(count=2):
    procs = this_host().spawn_procs(per_host={"gpus": count})
    mesh = procs.spawn("trainers", Mortal)
    return mesh, list(mesh.pid.call().get(60).values())
"""
