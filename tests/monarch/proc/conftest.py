"""A spawner of its own for each test, and links that the test talks over."""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import time
from pathlib import Path

import pytest

from tests.core.conftest import core  # noqa: F401 - a fixture

BODIES = "tests.monarch.proc.bodies"


@pytest.fixture(autouse=True, scope="session")
def _built(request):
    if importlib.util.find_spec("monarch._core") is None:
        request.getfixturevalue("core")


class Procs:
    """Processes by rank, with what they say and what is reported of them."""

    def __init__(self, secret=None, **settings):
        from monarch._proc.spawner import Spawner  # noqa: PLC0415 - needs the built module

        self.links = {}
        self.reports = {}
        self.pids = {}
        self.logs = []
        self.spawner = Spawner(
            self._add_link,
            on_started=self.pids.__setitem__,
            on_exit=lambda report: self.reports.__setitem__(report.proc, report),
            on_log=lambda *log: self.logs.append(log),
            secret=secret,
            settings=lambda: settings,
        )

    def _add_link(self, proc, fd):
        link = self.links[proc] = socket.socket(fileno=fd)
        link.settimeout(30)

    def spawn(self, count=1, size=None, **fields):
        from monarch._proc.spec import ProcSpec  # noqa: PLC0415 - as above

        fields.setdefault("name", "trainer")
        fields.setdefault("extent", (("workers",), (size or count,)))
        ids = [secrets.randbits(63) | 1 for _ in range(count)]
        self.spawner.spawn([ProcSpec(id_, rank, **fields) for rank, id_ in enumerate(ids)])
        return ids

    def hear(self, proc):
        """One line from a process; nothing at the end of its link."""
        data = b""
        while not data.endswith(b"\n"):
            got = self.links[proc].recv(1)
            if not got:
                break
            data += got
        return data.decode().rstrip("\n")

    def tell(self, proc, text=""):
        self.links[proc].sendall(text.encode() + b"\n")

    def pid(self, proc):
        until(lambda: self.spawner.receive() or proc in self.pids)
        return self.pids[proc]

    def report(self, proc):
        assert self.spawner.wait([proc], 30) == []
        return self.reports[proc]


@pytest.fixture
def procs():
    """`procs(body="…")`: a spawner; its processes are gone after the test."""
    made = []

    def make(body="serve", **settings):
        made.append(Procs(body=body if ":" in body else f"{BODIES}:{body}", **settings))
        return made[-1]

    yield make
    for each in made:
        each.spawner.close()
        for link in each.links.values():
            link.close()


def until(condition, seconds=30.0):
    """Wait for what another process does, at most `seconds`; whether it came true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill(pid, number):
    os.kill(pid, number)
