from __future__ import annotations

import queue
import uuid

import pytest

import monarch.actor
from tests.monarch.job.programs import start

_FOREVER = """
import sys
from monarch.actor import run_worker_loop_forever
run_worker_loop_forever(address=sys.argv[1], ca="trust_all_connections")
"""


@pytest.fixture(autouse=True)
def failures(monkeypatch):
    """What nobody handled, in place of the end of the program."""
    found = queue.Queue()
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", found.put, raising=False)
    return found


@pytest.fixture
def address():
    return f"ipc://@monarch-test-{uuid.uuid4().hex}"


@pytest.fixture
def worker(address):
    """`worker(code)` starts a worker at `address`; it is ended with the test."""
    made = []

    def run(code=_FOREVER, at=address):
        program = start(code, at)
        made.append(program)
        return program

    yield run
    for program in made:
        program.kill()
        program.communicate()
