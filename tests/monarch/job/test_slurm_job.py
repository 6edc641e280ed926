"""Hosts from SLURM: its real daemons on this machine, real workers on their nodes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ci import sshd
from monarch._job.interface import reachable
from monarch._link import secret
from monarch.actor import ActorCrashError
from monarch.errors import JobError
from monarch.job import DEFAULT_JOB_PATH, job_load
from tests.monarch.job.looks import ids, pids
from tests.monarch.job.programs import Who, gone, start

pytestmark = pytest.mark.slow
SHAPES = pytest.mark.parametrize("gang", [False, True], ids=["hosts", "gang"])


@SHAPES
def test_hosts_are_nodes_and_run_processes(slurm, slurm_job, gang):
    state = slurm_job({"trainers": 2, "loaders": 1}, gpus_per_node=2, gang=gang).state(
        cached_path=None
    )
    assert dict(state.trainers.extent) == {"hosts": 2}
    nodes = [*ids(state.trainers), *ids(state.loaders)]
    assert len(set(nodes)) == 3
    assert set(nodes) <= set(slurm.nodes)
    who = state.trainers.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    where = list(who.variable.call("SLURMD_NODENAME").get(60).values())
    assert where == [node for node in nodes[:2] for _ in range(2)]
    devices = list(who.variable.call("CUDA_VISIBLE_DEVICES").get(60).values())
    assert devices == ["0", "1", "0", "1"]


@pytest.mark.skipif(reachable() == "127.0.0.1", reason="no interface but loopback")
def test_hosts_are_reached_by_their_network_unless_told_otherwise(slurm, slurm_job):
    hosts = slurm_job({"hosts": 2}, bind_to=None).state(cached_path=None).hosts
    assert all(ref.address.startswith(f"tcp://{reachable()}:") for ref in hosts._refs())
    assert len(hosts.spawn_procs().spawn("who", Who).pid.call().get(60)) == 2


@SHAPES
def test_killing_the_job_frees_its_nodes_and_ends_all_processes(slurm, slurm_job, gang, failures):
    made = slurm_job({"hosts": 2}, gang=gang)
    hosts = made.state(cached_path=None).hosts
    who = hosts.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    all_pids = [*pids(made), *who.pid.call().get(60).values()]
    folder = made._there().path
    made.kill()
    assert slurm.queue() == []
    assert gone(all_pids, 20)
    assert not folder.exists()
    assert not made.active
    assert failures.empty()


def test_a_job_whose_folder_was_removed_ends_all_the_same(slurm, slurm_job):
    made = slurm_job({"hosts": 2})
    made.state(cached_path=None)
    found = pids(made)
    shutil.rmtree(made._there().path)
    made.kill()
    assert gone(found, 20)
    slurm._until(lambda: slurm.queue() == [], "empty queue", 20)


@SHAPES
def test_a_node_is_replaced_by_another_and_the_others_stay(slurm, slurm_job, gang):
    made = slurm_job({"hosts": 2}, gang=gang)
    before = made.state(cached_path=None).hosts
    lost, stays = ids(before)
    old = dict(zip(ids(before), pids(made), strict=True))
    new = made.replace_node(lost)
    assert new.node not in {lost, stays}
    after = made.state(cached_path=None).hosts
    assert ids(after) == [new.node, stays]
    assert pids(made)[1] == old[stays]
    assert gone([old[lost]], 20)
    who = after.spawn_procs().spawn("who", Who)
    found = list(who.variable.call("SLURMD_NODENAME").get(60).values())
    assert found == [new.node, stays]
    with pytest.raises(JobError, match=f"no host 'n99' to replace; its hosts are .*{stays}"):
        made.replace_node("n99")


@SHAPES
@pytest.mark.timeout(240)
def test_of_a_node_without_power_nothing_is_missed_and_the_others_go_on(
    slurm, slurm_job, gang, failures
):
    """SLURM notices after a while: it starts the host elsewhere, or goes on with the others."""
    made = slurm_job({"hosts": 2}, gang=gang)
    before = made.state(cached_path=None).hosts
    (lost, stays), (old, kept) = ids(before), pids(made)
    who = before.spawn_procs().spawn("who", Who)
    first, second = who.slice(hosts=0), who.slice(hosts=1)
    own = second.pid.call_one().get(60)
    asked = first.sleep.call_one(600)
    slurm.crash(lost)
    with pytest.raises(ActorCrashError) as raised:
        asked.get(60)
    assert raised.value.node_id == lost
    slurm._until(lambda: "down" in slurm.run("sinfo", "-h", "-n", lost, "-o", "%T"), "node down")
    if gang:
        made.replace_node(lost)
    else:
        slurm._until(lambda: pids(made)[0] != old, "another host")
    after = made.state(cached_path=None).hosts
    assert ids(after)[1] == stays
    assert ids(after)[0] not in {lost, stays}
    assert pids(made)[1] == kept
    assert second.pid.call_one().get(60) == own
    assert len(after.spawn_procs().spawn("again", Who).pid.call().get(60)) == 2


_CLIENT = """
import sys
from monarch.job import SlurmJob
from tests.monarch.job.programs import Who
job = SlurmJob({"hosts": 1}, monarch_port=0, bind_to="127.0.0.1", job_name=sys.argv[1])
state = job.state(**({} if sys.argv[2:] else {"cached_path": None}))
who = state.hosts.spawn_procs().spawn("who", Who)
folder = (job._cached or job)._there()
arrivals = folder.arrivals(folder.planned())
print(arrivals[0].pid, who.pid.call_one().get(60), flush=True)
sys.stdin.read()
"""


def client(*arguments, **variables):
    program = start(_CLIENT, *arguments, variables=variables)
    return program, *map(int, program.stdout.readline().split())


def test_a_stored_job_outlives_its_client_and_is_used_by_the_next(slurm):
    first, worker, proc = client("one", "stored")
    first.communicate("")
    assert gone([proc], 20)
    second, same, _ = client("one", "stored")
    assert same == worker
    second.communicate("")
    third, other, _ = client("two", "stored")  # asks for something else
    assert other != worker
    assert gone([worker], 20)
    third.communicate("")
    found = job_load(DEFAULT_JOB_PATH)
    document = json.loads(Path(DEFAULT_JOB_PATH).read_bytes())
    assert document["fields"]["_meshes"] == {"hosts": 1}
    found.kill()
    assert slurm.queue() == []


def test_a_job_that_is_not_stored_ends_with_its_client(slurm):
    program, worker, proc = client("one")
    assert len(slurm.queue()) == 1
    program.communicate("")
    assert slurm.queue() == []
    assert gone([worker, proc], 20)


@pytest.mark.report("113")
def test_variables_of_the_clients_own_allocation_are_not_the_jobs(slurm, slurm_job, monkeypatch):
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "4711")
    monkeypatch.setenv("SLURM_JOB_ID", "4712")
    monkeypatch.setenv("SLURM_NNODES", "7")
    made = slurm_job({"hosts": 1})
    hosts = made.state(cached_path=None).hosts
    (place,) = made._there().planned().values()
    who = hosts.spawn_procs().spawn("who", Who)
    own = who.variable.call_one("SLURM_ARRAY_JOB_ID").get(60)
    assert own == place.job.partition("_")[0]
    assert own != "4711"
    assert who.variable.call_one("SLURM_NNODES").get(60) == "1"


@pytest.mark.promise("X05")
def test_the_secret_is_in_the_folder_alone(slurm, slurm_job):
    made = slurm_job({"hosts": 1})
    made.state(cached_path=None)
    folder = made._there()
    key = folder.secret.read_bytes()
    assert folder.secret.stat().st_mode & 0o777 == 0o600
    assert folder.path.stat().st_mode & 0o777 == 0o700
    (place,) = folder.planned().values()
    told = slurm.run("scontrol", "show", "job", place.job).encode()
    script = folder.path / "script"
    slurm.run("scontrol", "write", "batch_script", place.job, str(script))
    (pid,) = pids(made)
    seen = told + script.read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
    seen += Path(f"/proc/{pid}/environ").read_bytes() + made.dumps()
    for form in (key, key.hex().encode()):
        assert form not in seen


@pytest.mark.report("112")
def test_a_host_that_is_started_again_is_found_where_it_is(slurm, slurm_job):
    made = slurm_job({"hosts": 1})
    hosts = made.state(cached_path=None).hosts
    (before,) = pids(made)
    hosts.stop().get(60)
    (place,) = made._places().values()
    slurm.run("scontrol", "requeue", place.job)
    again = made.state(cached_path=None).hosts
    (after,) = pids(made)
    assert after != before
    assert again.spawn_procs().spawn("who", Who).pid.call_one().get(60)
    assert gone([before], 20)


_BATCH = """
import sys
from monarch.job import SlurmJob
from tests.monarch.job.programs import Who
state = SlurmJob({"hosts": 2}, monarch_port=0, bind_to="127.0.0.1").state()
who = state.hosts.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
print("ran on", *who.variable.call("SLURMD_NODENAME").get(60).values(), flush=True)
sys.exit(3)
"""


def test_a_client_program_runs_in_the_allocation_which_ends_as_it_does(slurm, slurm_job):
    Path("client.py").write_text(_BATCH)
    made = slurm_job({"hosts": 2})
    made.apply(client_script="client.py")
    folder = made._there()
    ((name, _),) = {(place.job, 0) for place in folder.planned().values()}
    found = pids(made)
    slurm._until(lambda: slurm.queue() == [], "end of the client", 60)
    ran = (folder.path / "client.log").read_text().splitlines()[0].split()
    assert ran[:2] == ["ran", "on"]
    assert [ran.count(node) for node in set(ran[2:])] == [2, 2]
    assert "ExitCode=3:0" in slurm.run("scontrol", "show", "job", name)
    assert gone(found, 20)
    assert not folder.secret.exists()


def test_a_client_program_can_be_ended_with_its_hosts(slurm, slurm_job):
    Path("client.py").write_text("import time; time.sleep(600)")
    made = slurm_job({"hosts": 1})
    made.apply(client_script="client.py")
    slurm._until(lambda: pids(made), "host", 30)
    found = pids(made)
    made.kill()
    assert slurm.queue() == []
    assert gone(found, 20)


@pytest.mark.promise("X05")
def test_munge_seals_the_secret_for_the_nodes(slurm, slurm_job):
    made = slurm_job({"hosts": 2}, munge=True)
    hosts = made.state(cached_path=None).hosts
    assert len(hosts.spawn_procs().spawn("who", Who).pid.call().get(60)) == 2
    folder = made._there()
    key = secret.current().give()
    assert folder.sealed.stat().st_mode & 0o777 == 0o600
    for path in folder.path.iterdir():
        text = path.read_bytes()
        assert key not in text
        assert key.hex().encode() not in text
    folder.sealed.write_bytes(folder.sealed.read_bytes()[:40] + b":")
    with pytest.raises(JobError, match="secret cannot be had: munge cannot open the secret: "):
        made.state(cached_path=None)


@pytest.mark.skipif(reachable() == "127.0.0.1", reason="no interface but loopback")
@pytest.mark.skipif(bool(sshd.missing()), reason="no sshd")
def test_from_outside_of_the_cluster_links_go_through_a_gateway(
    slurm, slurm_job, instead, tmp_path
):
    with sshd.Server(tmp_path / "sshd") as gateway:
        instead("ssh", f'exec /usr/bin/ssh {" ".join(gateway.options)} "$@"')
        made = slurm_job({"hosts": 2}, bind_to=None, out_of_cluster=True, attach_to="me@gateway")
        # The user of the rig's configuration is whoever runs this.
        made._gateway = "gateway"
        hosts = made.state(cached_path=None).hosts
        who = hosts.spawn_procs().spawn("who", Who)
        assert len(set(who.pid.call().get(60).values())) == 2
        assert who.slice(hosts=0).ask.call_one(who.slice(hosts=1)).get(60)
        lost = ids(hosts)[0]
        assert made.replace_node(lost).reached().get(60) is None
        made.state(cached_path=None)
        (first, second) = made._tunnels._programs  # one for each node, however often it is asked
        asked = who.slice(hosts=1).sleep.call_one(60)
        first.kill()  # what it carries is lost: there is no other way
        with pytest.raises(ActorCrashError):
            asked.get(60)
        made.kill()
        assert gone([second.pid], 20)
