"""SkyPilot itself launches hosts, on SLURM's daemons by SSH: all real, on this machine."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

import monarch.actor
from ci import skypilot
from monarch.actor import ActorCrashError
from monarch.errors import JobError
from monarch.job import SkyPilotJob
from monarch.mesh import ProcessMesh
from tests.monarch.job.programs import Who, gone

pytest.importorskip("sky", reason="pip install skypilot; session skypilot runs these")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
SMALL = {"infra": f"slurm/{skypilot.CLOUD}", "cpus": 8, "memory": 1}  # a node each


@pytest.fixture(scope="module")
def clouds(tmp_path_factory):
    reason = skypilot.missing()
    if reason:
        pytest.skip(reason)
    with skypilot.Sky(tmp_path_factory.mktemp("skypilot")) as running:
        yield running


@pytest.fixture
def failures(monkeypatch):
    """What nobody handled, in place of the end of the program."""
    found = []
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", found.append)
    return found


@pytest.fixture
def options(clouds, monkeypatch, tmp_path):
    for name, value in clouds.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    path = os.pathsep.join(filter(None, [str(ROOT), *sys.path]))
    return {
        "resources": SMALL,
        "python_exe": sys.executable,
        "envs": {"PYTHONPATH": path},
        "idle_minutes_to_autostop": None,  # SkyPilot cannot, on SLURM without containers
        "job_start_timeout": 900.0,
    }


def test_hosts_are_launched_replaced_and_ended(clouds, options, failures):
    mesh = ProcessMesh.from_skypilot(2, cluster_name="t", **options)
    try:
        who = mesh.spawn("who", Who)
        before = list(who.pid.call().get(60).values())
        nodes = list(who.variable.call("MONARCH_NODE_ID").get(60).values())
        assert nodes == mesh.nodes == ["t-0", "t-1"]
        assert len(clouds.cluster.queue()) == 2
        agent = who.slice(hosts=1).agent.call_one().get(60)
        asked = who.slice(hosts=1).sleep.call(600)
        os.kill(agent, signal.SIGKILL)
        with pytest.raises(ActorCrashError) as raised:
            asked.get(60)
        mesh.replace_node(raised.value.node_id).get(900)
        assert [one.node_id for one in failures] == ["t-1"]
        after = list(who.pid.call().get(60).values())
        assert (after[0], mesh.nodes) == (before[0], ["t-0", "t-1-1"])
    finally:
        mesh.stop().get(300)
    assert gone(after, 20)
    assert clouds.cluster.queue() == []


def test_what_no_cloud_has_is_told_and_nothing_is_left(clouds, options):
    made = SkyPilotJob({"hosts": 1}, **{**options, "resources": {**SMALL, "cpus": 512}})
    with pytest.raises(JobError, match=r"SkyPilot (refuses|cannot launch)"):
        made.state(cached_path=None)
    assert not made.active
    assert clouds.cluster.queue() == []


def test_a_host_that_fails_is_told_with_its_last_words(clouds, options):
    made = SkyPilotJob({"hosts": 1}, **{**options, "python_exe": "/no/python"})
    with pytest.raises(JobError, match=r"(?s)has ended: FAILED; its last output:.*/no/python"):
        made.state(cached_path=None)
    assert clouds.cluster.queue() == []
