"""`SSHJob` on hosts with addresses of their own: an sshd each, in network namespaces."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

from ci import sshd
from tests.monarch.hosts.rig import ROOT
from tests.monarch.hosts.test_failures import _until_ready
from tests.watching import until

pytestmark = pytest.mark.skipif(bool(sshd.missing()), reason=sshd.missing())

_MESH = """
from monarch._job.ssh import job
from monarch.mesh import ProcessMesh
job.EXPIRES = 1
def networks():
    return list(who.network.call().get(60).values())
mesh = ProcessMesh.from_ssh(
    ["one", "two", "three"], 2, spares=1, ssh_args=["-F", sys.argv[1]], monarch_port=0
)
who = mesh.spawn("who", Who)
near, far = who.slice(hosts=0, gpus=0), who.slice(hosts=1, gpus=1)
tell(networks=networks(), here=os.readlink("/proc/self/ns/net"),
     asked=near.ask.call_one(far).get(60) == far.pid.call_one().get(60),
     addresses=[host.address for host in mesh._procs.request.hosts])
print("ready", flush=True)
"""
_REPLACE = """
try:
    far.hang.call_one().get(60)
except ActorCrashError as failure:
    tell(lost=failure.node_id)
    mesh.replace_node(failure.node_id)
tell(after=networks())
print("done", flush=True)
mesh.stop().get(60)
"""


@pytest.fixture
def reached(hosts, tmp_path):
    """`reached()`: hosts that ssh reaches as "one", "two" and "three", and its configuration."""
    servers = []

    def make():
        rig = hosts(3)
        named = dict(zip(("one", "two", "three"), rig.others, strict=True))
        path = os.pathsep.join([str(ROOT), *sys.path])
        servers.append(sshd.Server(tmp_path / "sshd", {"PYTHONPATH": path}, named))
        return rig, servers[-1].__enter__().folder / "ssh_config"

    yield make
    for server in servers:
        server.__exit__(None, None, None)


def _programs(*hosts):
    """What runs on hosts besides their servers of ssh."""
    found = []
    for pid in [pid for host in hosts for pid in host.pids()]:
        with contextlib.suppress(OSError):
            if b"monarch" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_a_machine_that_is_cut_off_is_replaced_and_ends_by_itself(reached):
    rig, config = reached()
    program = rig.begin(_MESH + _REPLACE, str(config))
    told = _until_ready(program)
    one, two, _three = rig.others
    found = told["networks"]
    assert len({told["here"], *found}) == 3
    assert found[0] == found[1] != found[2] == found[3]
    assert told["asked"]
    at = [url.rpartition(":")[0] for url in told["addresses"]]
    assert at == [f"tcp://{host.address}" for host in (one, two)]
    two.cut()
    told = _until_ready(program)
    assert told["lost"] == "two"
    assert told["after"][:2] == found[:2]
    assert told["after"][2] == told["after"][3] not in found
    assert program.wait(60) == 0
    until(lambda: not _programs(*rig.others), 30)


_FAILS = """
from monarch.job import SSHJob
began = time.monotonic()
try:
    SSHJob({"hosts": ["one", "two"]}, ssh_args=["-F", sys.argv[1]]).state(cached_path=None)
except JobError as error:
    tell(error=str(error), seconds=time.monotonic() - began)
"""


def test_a_machine_that_does_not_answer_ends_the_others(reached):
    rig, config = reached()
    rig.others[1].cut()
    told = rig.run(_FAILS, str(config))
    assert told["error"].startswith("host two: ssh cannot reach it:")
    assert told["seconds"] < 30
    until(lambda: not _programs(*rig.others), 30)
