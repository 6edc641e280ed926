"""Links between processes that have only heard of each other."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monarch import config
from monarch.errors import LinkError

_PEER = """
import sys
from monarch._actor.process import process
here = process()
here.on("echo", lambda peer, body: (peer, body, here.id))
here.on("relay", lambda peer, body: here.tell(body, "told", "hello"))
print(here.id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def peer(here, tmp_path):
    """The id of another process, which this one has no link to."""
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", _PEER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    ) as program:
        yield int(program.stdout.readline())
        program.stdin.close()
        assert program.wait(20) == 0


@pytest.fixture
def here():
    from monarch._actor.process import process  # noqa: PLC0415 - native code

    return process()


def test_what_is_sent_makes_the_link(here, peer):
    assert not here.engine.has_link(peer)
    assert here.ask(peer, "echo", "hi", 20) == (here.id, "hi", peer)
    assert here.engine.has_link(peer)


def test_an_address_that_does_not_follow_from_the_id_is_told(here, peer):
    here.add_peer(peer, f"ipc://@monarch-{os.getuid()}-{peer:016x}")
    assert here.ask(peer, "echo", 1, 20)[1] == 1


@pytest.mark.promise("R09")
def test_who_cannot_be_reached_ends_what_waits_for_it(here):
    nobody = int.from_bytes(os.urandom(8), "big") | 1
    start = time.monotonic()
    with (
        config.configured(message_delivery_timeout="100ms"),
        pytest.raises((LinkError, ConnectionError), match=r"gone|answers"),
    ):
        here.ask(nobody, "echo", 1, 20)
    assert time.monotonic() - start < 10


@pytest.mark.promise("X04")
def test_a_process_listens_on_no_address_of_the_network(here, peer):
    here.ask(peer, "echo", 1, 20)
    ours = {
        link.readlink().name.removeprefix("socket:[").removesuffix("]")
        for pid in {os.getpid(), *_children()}
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if link.is_symlink() and link.readlink().name.startswith("socket:")
    }
    listening = [
        line.split()
        for table in ("tcp", "tcp6", "udp", "udp6")
        for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
    ]
    assert [row[1] for row in listening if row[9] in ours and row[3] == "0A"] == []


def _children():
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that ended meanwhile
            found |= {int(pid) for pid in (task / "children").read_text(encoding="ascii").split()}
    return found
