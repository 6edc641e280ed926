"""Hosts from SLURM: its real daemons on this machine, real workers on their nodes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from ci import sshd
from monarch._job.interface import reachable
from monarch._job.slurm import commands, ending
from monarch._link import secret
from monarch.actor import ActorCrashError
from monarch.errors import JobError
from monarch.job import DEFAULT_JOB_PATH, SlurmJob, job_load
from tests.monarch.job.programs import Who, gone, start

pytestmark = pytest.mark.slow
SHAPES = pytest.mark.parametrize("gang", [False, True], ids=["hosts", "gang"])


@pytest.fixture
def job(slurm):
    """`job({"hosts": 2})`: a job that is ended with the test."""
    made = []

    def make(*arguments, **options):
        given = {"monarch_port": 0, "bind_to": "127.0.0.1", **options}
        made.append(SlurmJob(*arguments, **given))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def ids(mesh):
    return [ref.node for ref in mesh._refs()]


def pids(job):
    folder = job._there()
    return [arrival.pid for arrival in folder.arrivals(folder.planned()).values()]


@SHAPES
def test_hosts_are_nodes_and_run_processes(slurm, job, gang):
    state = job({"trainers": 2, "loaders": 1}, gpus_per_node=2, gang=gang).state(cached_path=None)
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
def test_hosts_are_reached_by_their_network_unless_told_otherwise(slurm, job):
    hosts = job({"hosts": 2}, bind_to=None).state(cached_path=None).hosts
    assert all(ref.address.startswith(f"tcp://{reachable()}:") for ref in hosts._refs())
    assert len(hosts.spawn_procs().spawn("who", Who).pid.call().get(60)) == 2


@SHAPES
def test_killing_the_job_frees_its_nodes_and_ends_all_processes(slurm, job, gang, failures):
    made = job({"hosts": 2}, gang=gang)
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


def test_a_job_whose_folder_was_removed_ends_all_the_same(slurm, job):
    made = job({"hosts": 2})
    made.state(cached_path=None)
    found = pids(made)
    shutil.rmtree(made._there().path)
    made.kill()
    assert gone(found, 20)
    slurm._until(lambda: slurm.queue() == [], "empty queue", 20)


@SHAPES
def test_a_node_is_replaced_by_another_and_the_others_stay(slurm, job, gang):
    made = job({"hosts": 2}, gang=gang)
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
def test_variables_of_the_clients_own_allocation_are_not_the_jobs(slurm, job, monkeypatch):
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "4711")
    monkeypatch.setenv("SLURM_JOB_ID", "4712")
    monkeypatch.setenv("SLURM_NNODES", "7")
    made = job({"hosts": 1})
    hosts = made.state(cached_path=None).hosts
    (place,) = made._there().planned().values()
    who = hosts.spawn_procs().spawn("who", Who)
    own = who.variable.call_one("SLURM_ARRAY_JOB_ID").get(60)
    assert own == place.job.partition("_")[0]
    assert own != "4711"
    assert who.variable.call_one("SLURM_NNODES").get(60) == "1"


@pytest.mark.promise("X05")
def test_the_secret_is_in_the_folder_alone(slurm, job):
    made = job({"hosts": 1})
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


def start_blocker(tasks="0-4"):
    """Jobs that hold so many nodes."""
    command = ["sbatch", "--parsable", f"--array={tasks}", "--exclusive", "-o/dev/null"]
    done = subprocess.run(
        [*command, "--wrap=sleep 600"], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def fails_within(seconds, made, match):
    began = time.monotonic()
    with pytest.raises(JobError, match=match):
        made.state(cached_path=None)
    assert time.monotonic() - began < seconds
    assert not made.active


def test_a_partition_that_does_not_exist(slurm, job):
    fails_within(20, job({"hosts": 2}, partition="nope"), "invalid partition specified: nope")
    assert slurm.queue() == []
    assert not list(Path(".monarch/slurm").iterdir())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"partition": "short", "time_limit": "10"}, "PartitionTimeLimit"),
        ({"partition": "narrow", "gang": True}, "PartitionNodeLimit"),
    ],
)
def test_more_than_the_partition_may_have(slurm, job, options, reason):
    fails_within(20, job({"hosts": 2}, **options), f"(?s)wait for ever: {reason}")
    assert slurm.queue() == []


def test_a_job_that_is_killed_while_it_waits(slurm, job, tmp_path, capfd):
    blocker = start_blocker("0-3")
    end = time.monotonic() + 60
    while sum(line.startswith(blocker) and "RUNNING" in line for line in slurm.queue()) < 4:
        assert time.monotonic() < end, slurm.queue()
        time.sleep(0.2)
    made = job({"hosts": 3})
    made.apply()
    places = made._places()
    waits = [line for line in slurm.queue() if line.split()[1] == "PENDING"]
    assert waits
    program = f"sleep 4; scancel {waits[-1].split()[0]}"
    killer = subprocess.Popen(["sh", "-c", program])  # while state() waits
    with killer:
        fails_within(30, made, r"host \d of the job has ended: .* cancelled before it started")
    assert "hosts ready" in capfd.readouterr().err
    ours = {place.job.partition("_")[0] for place in places.values()}
    assert not [line for line in slurm.queue() if line.partition("_")[0] in ours]
    assert [line for line in slurm.queue() if line.partition("_")[0] == blocker]


def test_hosts_that_do_not_come_in_time(slurm, job):
    made = job({"hosts": 6}, job_start_timeout=2.5)  # of five nodes
    fails_within(20, made, r"in 2.5 s .*SLURM job \d+: \d of 6 hosts ready, .*pending")
    assert slurm.queue() == []


def test_a_program_that_does_not_start_is_told_with_its_last_words(slurm, job):
    made = job({"hosts": 1}, python_exe="/bin/false", log_dir="logs")
    fails_within(20, made, r"host 0 of the job has ended: SLURM job \d+_0: FAILED \(exit code 1")
    made = job({"hosts": 1}, python_exe="/no/python", log_dir="logs")
    fails_within(20, made, r"(?s)last output:.*/no/python")
    assert slurm.queue() == []


@pytest.mark.report("112")
def test_a_host_that_is_started_again_is_found_where_it_is(slurm, job):
    made = job({"hosts": 1})
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


@pytest.mark.parametrize(
    "answer",
    [
        """echo '{"errors": [], "jobs": []}'""",
        """echo '{"errors": [{"source": "slurm_load_jobs"}], "jobs": []}'""",
        "echo 'squeue: unrecognized option --json' >&2; exit 1",
    ],
)
def test_an_answer_of_squeue_without_the_job_ends_nothing(slurm, job, instead, answer):
    instead("squeue", answer)
    made = job({"hosts": 1})
    assert made.state(cached_path=None).hosts.initialized.get(60)
    instead(
        "scontrol", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"
    )
    with pytest.raises(JobError, match="Unable to contact"):
        commands.look([place.job for place in made._places().values()])
    instead("scontrol", 'exec /usr/bin/scontrol "$@"')
    assert made.state(cached_path=None).hosts.initialized.get(60)


def test_one_wrong_word_of_slurm_ends_nothing(slurm, job, instead, tmp_path):
    instead("squeue", """echo '{"errors": [], "jobs": []}'""")
    made = job({"hosts": 1})
    made.apply()
    instead(
        "scontrol",
        f"mkdir {tmp_path}/asked && {{ echo 'Invalid job id specified' >&2; exit 1; }}\n"
        'exec /usr/bin/scontrol "$@"',
    )
    assert made.state(cached_path=None).hosts.initialized.get(60)
    assert (tmp_path / "asked").exists()


def test_a_host_list_that_cannot_be_read_is_told(slurm, job, instead):
    record = {
        "job_id": 1,
        "job_state": "RUNNING",
        "state_reason": "None",
        "nodes": "n[1-",
        "array_task_id": 0,
    }
    made = job({"hosts": 1})
    made.state(cached_path=None)
    (place,) = made._places().values()
    record["array_job_id"] = int(place.job.partition("_")[0])
    instead("squeue", f"echo '{json.dumps({'jobs': [record]})}'")
    with pytest.raises(JobError, match=r"host list that cannot be read: 'n\[1-' is no host list"):
        made.state(cached_path=None)
    instead("squeue", 'exec /usr/bin/squeue "$@"')


_BATCH = """
import sys
from monarch.job import SlurmJob
from tests.monarch.job.programs import Who
state = SlurmJob({"hosts": 2}, monarch_port=0, bind_to="127.0.0.1").state()
who = state.hosts.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
print("ran on", *who.variable.call("SLURMD_NODENAME").get(60).values(), flush=True)
sys.exit(3)
"""


def test_a_client_program_runs_in_the_allocation_which_ends_as_it_does(slurm, job):
    Path("client.py").write_text(_BATCH)
    made = job({"hosts": 2})
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


def test_a_client_program_can_be_ended_with_its_hosts(slurm, job):
    Path("client.py").write_text("import time; time.sleep(600)")
    made = job({"hosts": 1})
    made.apply(client_script="client.py")
    slurm._until(lambda: pids(made), "host", 30)
    found = pids(made)
    made.kill()
    assert slurm.queue() == []
    assert gone(found, 20)


@pytest.mark.promise("X05")
def test_munge_seals_the_secret_for_the_nodes(slurm, job):
    made = job({"hosts": 2}, munge=True)
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


def test_where_munge_is_not_it_says_what_to_install(slurm, job, instead, monkeypatch):
    for name in ("sbatch", "scontrol", "squeue", "scancel"):
        instead(name, f'exec {shutil.which(name)} "$@"')
    with monkeypatch.context() as without:
        without.setenv("PATH", os.environ["PATH"].partition(":")[0])
        with pytest.raises(JobError, match=r"munge is not on this machine's PATH.*apt-get install"):
            job({"hosts": 1}, munge=True).apply()
    assert slurm.queue() == []
    assert not list(Path(".monarch/slurm").iterdir())


@pytest.mark.skipif(reachable() == "127.0.0.1", reason="no interface but loopback")
@pytest.mark.skipif(bool(sshd.missing()), reason="no sshd")
def test_from_outside_of_the_cluster_links_go_through_a_gateway(slurm, job, instead, tmp_path):
    with sshd.Server(tmp_path / "sshd") as gateway:
        instead("ssh", f'exec /usr/bin/ssh {" ".join(gateway.options)} "$@"')
        made = job({"hosts": 2}, bind_to=None, out_of_cluster=True, attach_to="me@gateway")
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


def test_a_gateway_that_cannot_be_reached_ends_the_job(slurm, job, instead):
    instead("ssh", "echo no route to gateway >&2; exit 255")
    made = job({"hosts": 1}, out_of_cluster=True, attach_to="gateway")
    fails_within(30, made, r"(?s)tunnel by ssh to gateway cannot be made:.*no route")
    assert slurm.queue() == []


def test_a_port_that_is_taken_is_told(slurm, job):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        made = job({"hosts": 1}, monarch_port=taken.getsockname()[1])
        fails_within(20, made, r"(?s)host 0 .*has ended.*cannot listen on .*in use")
    assert slurm.queue() == []


def test_a_secret_that_is_gone_before_a_host_starts_is_told(slurm, job):
    made = job({"hosts": 1})
    blocker = start_blocker()
    made.apply()
    made._there().secret.unlink()
    slurm.run("scancel", blocker)
    fails_within(30, made, r"(?s)host 0 of the job has ended: .*cannot read the secret")
    assert slurm.queue() == []


def test_what_does_not_end_is_killed_and_what_slurm_keeps_is_named(
    slurm, job, instead, monkeypatch, tmp_path
):
    monkeypatch.setattr(ending, "_ORDERLY", 1.0)
    monkeypatch.setattr(ending, "_KILLED", 1.0)
    made = job({"hosts": 1}, python_exe="/bin/sh")  # its program is no host, and ends at once
    made._program = lambda *_: ["sleep", "600"]
    made.apply()
    slurm._until((made._there().path / "host-0.log").exists, "output", 20)
    instead("scancel", f'echo "$@" >> {tmp_path}/told')
    (place,) = made._places().values()
    number = place.job.partition("_")[0]
    with pytest.raises(JobError, match=rf"SLURM still has {place.job} .*scancel {place.job}$"):
        made.kill()
    assert (tmp_path / "told").read_text().splitlines() == [
        number,
        f"--signal=KILL --full {number}",
    ]
    instead("scancel", 'exec /usr/bin/scancel "$@"')


def test_without_slurms_commands_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JobError, match="apt-get install slurm-client"):
        SlurmJob({"hosts": 1}).state(cached_path=None)
    assert not list(Path(".monarch/slurm").iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"meshes": {"a b": 1}}, "usable as an attribute"),
        ({"meshes": {"a": 0}}, "1 or more"),
        ({"job_name": "a b"}, "job_name"),
        ({"slurm_args": ["x"]}, "no option of sbatch"),
        ({"slurm_args": ["-x\n#SBATCH -y"]}, "no option of sbatch"),
        ({"monarch_port": 70000}, "0 to 65535"),
        ({"out_of_cluster": True}, "give both"),
        ({"attach_to": "gateway"}, "give both"),
        ({"out_of_cluster": True, "attach_to": "-oProxyCommand=x"}, "give both"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options, said):
    with pytest.raises(ValueError, match=said):
        SlurmJob(**{"meshes": {"a": 1}, **options})
