"""A child process to call into, shared by the tests of a session, and actors that go away."""

from __future__ import annotations

import os
import signal

import pytest

from tests.monarch.actor import rig


@pytest.fixture(scope="session")
def child():
    """The proc id of a forked child; whole procs are other tests' subject."""
    proc = rig.start_child()
    yield proc
    os.kill(rig.children[-1], signal.SIGKILL)
    os.waitpid(rig.children[-1], 0)


@pytest.fixture(params=["here", "child"])
def procs(request):
    """Where actors are spawned: in this process, and in a child of it."""
    return None if request.param == "here" else [request.getfixturevalue("child")]
