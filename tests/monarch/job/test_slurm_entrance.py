"""A SLURM job whose nodes are reached by way of one of them: `attach_to="tcp://…"`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ci.rigs import namespaces
from ci.rigs.forward import forward
from monarch._actor.process import process
from monarch.errors import AddressError
from monarch.job import SlurmJob
from tests.monarch.job.programs import start

pytestmark = pytest.mark.slow
_PORT = 22222
_CLIENT = """
import sys
from monarch.job import SlurmJob
from tests.monarch.job.programs import Who
job = SlurmJob(
    {"hosts": 2}, python_exe=sys.argv[1], out_of_cluster=True, attach_to=sys.argv[2],
    monarch_port=int(sys.argv[3]),
)
job.apply()
try:
    hosts = job.state(cached_path=None).hosts
except Exception as error:
    print(type(error).__name__, error, *getattr(error, "__notes__", ()))
else:
    who = hosts.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    pids = list(who.pid.call().get(60).values())
    inner = who.slice(hosts=0, gpus=0).ask.call_one(who.slice(hosts=1, gpus=1)).get(60)
    print(len(set(pids)), inner == pids[3])
job.kill()
"""


@pytest.fixture
def far(tmp_path):
    """A network that this machine does not reach, and the interpreter that runs a host in it."""
    reason = namespaces.missing()
    if reason:
        pytest.skip(reason)
    with namespaces.Network(2) as network:
        python = tmp_path / "python"
        inside = f'--net=/run/netns/{network.name}h"$SLURM_ARRAY_TASK_ID"'
        python.write_text(f'#!/bin/sh\nexec nsenter {inside} -- {sys.executable} "$@"\n', "ascii")
        python.chmod(0o755)
        yield network, str(python)


def run(python, address, **variables):
    client = start(_CLIENT, python, address, str(_PORT), variables=variables)
    out, _ = client.communicate(timeout=120)
    return out


def test_a_forward_to_one_node_leads_to_all_of_them(slurm, far):
    network, python = far
    first = network.hosts[0]
    with forward(lambda: first.connect((first.address, _PORT))) as port:
        out = run(python, f"tcp://127.0.0.1:{port}")
    assert out == "4 True\n"
    assert slurm.queue() == []


def test_where_no_forward_begins_the_one_to_make_is_told(slurm, far):
    network, python = far
    out = run(python, "tcp://127.0.0.1:9", MONARCH_MESH_ATTACH_CONFIG_TIMEOUT="2s")
    assert out.startswith("LinkError nothing answers at tls://127.0.0.1:9: "), out
    assert f"ssh -N -L 9:{network.hosts[0].address}:{_PORT} " in out
    assert slurm.queue() == []


def test_a_program_that_uses_the_runtime_already_is_told_so_before_there_are_jobs(slurm):
    made = SlurmJob({"hosts": 1}, out_of_cluster=True, attach_to="tcp://10.1.2.3:26600")
    process()
    with pytest.raises(RuntimeError, match=r"attach\('tcp://10.1.2.3:26600'\) comes too late"):
        made.apply()
    assert slurm.queue() == []
    assert not Path(".monarch/slurm").exists()


@pytest.mark.parametrize("given", ["tcp://", "tcp://nowhere", "ipc://@gateway", "http://a:1"])
def test_what_is_no_host_is_refused(given):
    with pytest.raises(AddressError, match="attach_to"):
        SlurmJob({"hosts": 1}, out_of_cluster=True, attach_to=given)
