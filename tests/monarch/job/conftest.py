from __future__ import annotations

import os
import queue
import uuid

import pytest

import monarch.actor
from monarch.job import SlurmJob
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


@pytest.fixture
def slurm_job(slurm):
    """`slurm_job({"hosts": 2})`: a job that is ended with the test."""
    made = []

    def make(*arguments, **options):
        given = {"monarch_port": 0, "bind_to": "127.0.0.1", **options}
        made.append(SlurmJob(*arguments, **given))
        return made[-1]

    yield make
    for one in made:
        one.kill()


@pytest.fixture
def instead(tmp_path, monkeypatch):
    """`instead("squeue", script)`: a command that runs in place of SLURM's for this test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(name, script):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        (folder / name).chmod(0o755)

    return make
