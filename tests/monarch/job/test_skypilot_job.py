"""Hosts from a stand-in for SkyPilot's client: real workers, in processes of this machine.

SkyPilot itself is in tests/skypilot, which session `skypilot` runs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from monarch._link import secret
from monarch.actor import ActorCrashError
from monarch.errors import JobError
from monarch.job import DEFAULT_JOB_PATH, SkyPilotJob, job_load
from monarch.mesh import ProcessMesh
from tests.monarch.job.looks import fails, ids
from tests.monarch.job.programs import Who, gone, lives, start

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]


class Clouds:
    """What the stand-in is told, and what it has."""

    def __init__(self, folder):
        self.folder = folder

    def tell(self, what, **values):
        text = json.dumps({name.replace("_", "-"): text for name, text in values.items()})
        temporary = self.folder / f"{what}.new"
        temporary.write_text(text)
        temporary.replace(self.folder / f"{what}.json")

    def clusters(self):
        return sorted(path.parent.name for path in self.folder.glob("*/record.json"))

    def record(self, cluster):
        return json.loads((self.folder / cluster / "record.json").read_bytes())

    def pids(self, cluster):
        return [int(path.read_text()) for path in self.folder.glob(f"{cluster}/node-*/pid")]


@pytest.fixture
def clouds(tmp_path, monkeypatch):
    path = [str(ROOT / "ci/standins"), str(ROOT), *sys.path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    monkeypatch.setenv("SKY_STANDIN", str(tmp_path / "clouds"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clouds").mkdir()
    return Clouds(tmp_path / "clouds")


@pytest.fixture
def job(clouds):
    """`job({"hosts": 2})`: a job that is ended with the test."""
    made = []

    def make(meshes, **options):
        given = {"python_exe": sys.executable, "cluster_name": "c", **options}
        made.append(SkyPilotJob(meshes, **given))
        return made[-1]

    yield make
    clouds.tell("stuck")
    for one in made:
        one.kill()


def test_hosts_are_clusters_and_run_processes(clouds, job):
    made = job({"trainers": 2, "loaders": 1}, envs={"TOLD": "yes"}, resources={"cpus": 4})
    state = made.state(cached_path=None)
    assert [ids(state.trainers), ids(state.loaders)] == [["c-0", "c-1"], ["c-2"]]
    record = clouds.record("c-1")
    assert (record["autostop"], record["down"], record["task"]["num_nodes"]) == (10, True, 1)
    assert record["task"]["resources"] == {"cpus": 4}
    who = state.trainers.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    assert len(set(who.pid.call().get(60).values())) == 4
    assert list(who.variable.call("TOLD").get(60).values()) == ["yes"] * 4
    nodes = list(who.variable.call("MONARCH_NODE_ID").get(60).values())
    assert nodes == ["c-0", "c-0", "c-1", "c-1"]


def test_a_gang_is_one_cluster_of_which_no_node_can_be_replaced(clouds, job):
    made = job({"hosts": 2}, gang=True)
    hosts = made.state(cached_path=None).hosts
    assert clouds.clusters() == ["c"]
    assert ids(hosts) == ["c-0", "c-1"]
    who = hosts.spawn_procs().spawn("who", Who)
    assert list(who.variable.call("MONARCH_NODE_ID").get(60).values()) == ["c-0", "c-1"]
    with pytest.raises(JobError, match=r"c-1 cannot be replaced: .* without gang=True"):
        made.replace_node("c-1")


@pytest.mark.promise("X05")
def test_the_secret_is_in_no_task_argument_or_variable(clouds, job):
    made = job({"hosts": 1})
    made.state(cached_path=None)
    key = secret.current().give()
    seen = b"".join(
        path.read_bytes() for path in Path(".monarch").rglob("*") if path.name.endswith(".yaml")
    )
    seen += json.dumps(clouds.record("c-0")).encode() + made.dumps()
    for pid in clouds.pids("c-0"):
        seen += (
            Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        )
    for form in (key, key.hex().encode()):
        assert form not in seen
    (mounted,) = (clouds.folder / "c-0/home/.monarch/c-0").iterdir()
    assert mounted.stat().st_mode & 0o777 == 0o600


def test_killing_the_job_ends_clusters_and_all_that_runs_on_them(clouds, job, failures):
    made = job({"hosts": 2})
    who = made.state(cached_path=None).hosts.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    pids = [*who.pid.call().get(60).values(), *clouds.pids("c-*")]
    made.kill()
    assert gone(pids, 20)
    assert clouds.clusters() == []
    assert list(Path(".monarch/skypilot").iterdir()) == []
    assert failures.empty()


def test_a_lost_node_is_replaced_and_the_same_handle_answers(clouds, failures):
    mesh = ProcessMesh.from_skypilot(
        2, 2, spares=1, cluster_name="c", python_exe=sys.executable, envs={"A": "b"}
    )
    try:
        who = mesh.spawn("who", Who)
        before = list(who.pid.call().get(60).values())
        assert (mesh.nodes, mesh.spares) == (["c-0", "c-1"], ["c-2"])
        asked = who.slice(hosts=1).sleep.call(60)
        for pid in clouds.pids("c-1"):
            os.killpg(pid, signal.SIGKILL)
        with pytest.raises(ActorCrashError) as raised:
            asked.get(60)
        mesh.replace_node(raised.value.node_id)
        after = list(who.pid.call().get(60).values())
        assert after[:2] == before[:2]
        assert mesh.nodes == ["c-0", "c-2"]
        end = time.monotonic() + 60
        while mesh.spares != ["c-1-1"]:  # the one that was lost, as a new cluster
            assert time.monotonic() < end
            time.sleep(0.05)
        assert clouds.clusters() == ["c-0", "c-1-1", "c-2"]
    finally:
        mesh.stop().get(60)
    assert clouds.clusters() == []


_CLIENT = """
import os, sys
from monarch._job.sky import job as of
of.EXPIRES = int(os.environ.get("EXPIRES", "300"))
from monarch.job import SkyPilotJob
from tests.monarch.job.programs import Who
job = SkyPilotJob({"hosts": 1}, cluster_name=sys.argv[1], python_exe=sys.executable)
state = job.state(**({} if sys.argv[2:] else {"cached_path": None}))
print(state.hosts.spawn_procs().spawn("who", Who).pid.call_one().get(60), flush=True)
sys.stdin.read()
"""


def client(*arguments, **variables):
    given = {"PYTHONPATH": os.environ["PYTHONPATH"], **variables}
    program = start(_CLIENT, *arguments, variables=given)
    return program, int(program.stdout.readline())


def test_a_stored_job_outlives_its_client_and_is_used_by_the_next(clouds):
    first, proc = client("one", "stored")
    (worker,) = clouds.pids("one-0")
    first.kill()
    first.communicate()
    assert gone([proc], 20)
    second, _ = client("one", "stored")
    assert clouds.pids("one-0") == [worker]
    second.communicate("")
    assert lives(worker)
    third, _ = client("two", "stored")  # asks for something else
    assert clouds.clusters() == ["two-0"]
    third.communicate("")
    job_load(DEFAULT_JOB_PATH).kill()
    assert clouds.clusters() == []


def test_a_job_that_is_not_stored_ends_with_its_client(clouds):
    program, proc = client("one")
    program.communicate("")
    assert clouds.clusters() == []
    assert gone([proc], 20)


def test_a_host_ends_by_itself_where_its_client_vanished(clouds):
    """The cluster is then idle, which is for SkyPilot to end."""
    program, proc = client("one", EXPIRES="1")
    (worker,) = clouds.pids("one-0")
    program.kill()
    program.communicate()
    assert gone([proc, worker], 20)


def fails_leaving_nothing(clouds, made, match):
    fails(made, match)
    assert clouds.clusters() == []
    assert list(Path(".monarch/skypilot").iterdir()) == []


def test_a_quota_that_is_exceeded_leaves_nothing(clouds, job):
    clouds.tell("fail", c_1="Failed to acquire resources in all zones: quota exceeded")
    fails_leaving_nothing(
        clouds, job({"hosts": 2}), "cannot launch c-1: ResourcesUnavailableError: .* quota exc"
    )


def test_where_skypilot_cannot_stop_clusters_by_itself_it_says_what_to_give(clouds, job):
    clouds.tell("fail", c_0="Autostop is supported only for container clusters on Slurm")
    fails_leaving_nothing(
        clouds, job({"hosts": 1}), r"Autostop is .*idle_minutes_to_autostop=None does without"
    )


def test_a_launch_that_is_ended_while_it_waits(clouds, job):
    clouds.tell("held", c_1="Launching")
    made = job({"hosts": 2})
    made.apply()
    threading.Timer(1.0, shutil.rmtree, [clouds.folder / "c-1"]).start()
    fails_leaving_nothing(clouds, made, "cannot launch c-1: .*it was cancelled")


def test_a_port_that_is_taken_is_told(clouds, job):
    with socket.socket() as taken:
        taken.bind(("127.8.1.1", 0))
        taken.listen()
        made = job({"hosts": 1}, monarch_port=taken.getsockname()[1])
        fails_leaving_nothing(
            clouds, made, r"(?s)program of c-0 has ended: FAILED.*cannot listen on .*in use"
        )


def test_a_program_that_does_not_start_is_told_with_its_last_words(clouds, job):
    made = job({"hosts": 1}, python_exe="/no/python")
    fails_leaving_nothing(
        clouds, made, r"(?s)program of c-0 has ended: FAILED; its last output:.*/no/python"
    )


def test_hosts_that_do_not_come_in_time_are_named_with_the_reason(clouds, job, capfd):
    clouds.tell("held", c_1="Launching: no capacity in us-west1")
    made = job({"hosts": 2}, job_start_timeout=4.0)
    reason = r"1 of 2 hosts ready, 1 pending \(Launching: no capacity in us-west1\); missing: c-1"
    fails_leaving_nothing(clouds, made, reason)
    assert capfd.readouterr().err.count("waiting for SkyPilot job c: 1 of 2 hosts ready") == 1


def test_a_server_that_is_away_for_a_while_ends_nothing(clouds, job):
    made = job({"hosts": 1})
    made.apply()
    (clouds.folder / "late").touch()
    threading.Timer(2.0, (clouds.folder / "late").unlink).start()
    assert made.state(cached_path=None).hosts.initialized.get(60)


def test_a_cluster_that_cannot_be_ended_is_named(clouds, job):
    made = job({"hosts": 2})
    made.state(cached_path=None)
    clouds.tell("stuck", c_1="")
    with pytest.raises(JobError, match=r"c-1: RuntimeError: the cloud does .*sky down -y c-1$"):
        made.kill()
    assert clouds.clusters() == ["c-1"]


def test_two_jobs_of_one_name_do_not_mix(clouds, job):
    first = job({"hosts": 1})
    first.apply()
    with pytest.raises(JobError, match="a job of this name runs, or was not ended"):
        job({"hosts": 1}).apply()
    assert clouds.clusters() == ["c-0"]


def test_without_skypilot_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "runtime"))
    with pytest.raises(JobError, match="pip install skypilot"):
        SkyPilotJob({"hosts": 1}).state(cached_path=None)
    assert list(Path(".monarch/skypilot").iterdir()) == []
