from __future__ import annotations

import os
import signal

import pytest

from tests.promises.programs import Client


@pytest.fixture
def client():
    """`client(body)` runs a program; see `programs.HEAD` for what it can use."""
    made: list[Client] = []

    def run(body: str) -> Client:
        made.append(Client(body))
        return made[-1]

    yield run
    for one in made:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGKILL)
        one.process.communicate()
