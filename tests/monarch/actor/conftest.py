"""A child process to call into, shared by the tests of a module, and actors that go away."""

from __future__ import annotations

import os
import signal

import pytest

import monarch.actor
from tests.monarch.actor import rig


@pytest.fixture(scope="module")
def child():
    """The proc id of a forked child; whole procs are other tests' subject."""
    yield from _child()


@pytest.fixture(autouse=True)
def _own_failures(monkeypatch):
    """Actors fail on purpose here, and nobody is asked: what their callers get is looked at."""
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", lambda _failure: None)


@pytest.fixture
def own_child():
    """A child of the test's own, whose first actor lives in its main thread."""
    yield from _child()


def _child():
    proc = rig.start_child()
    pid = rig.children[-1]
    yield proc
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.fixture(params=["here", "child"])
def procs(request):
    """Where actors are spawned: in this process, and in a child of it."""
    return None if request.param == "here" else [request.getfixturevalue("child")]
