"""Hosts by SSH: a real server on loopback, the client of OpenSSH, real workers."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from ci import sshd
from monarch._link import secret
from monarch.actor import ActorCrashError
from monarch.job import DEFAULT_JOB_PATH, SSHJob, job_load
from monarch.mesh import ProcessMesh
from tests.monarch.job.looks import fails
from tests.monarch.job.programs import Who, gone, lives, start

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    reason = sshd.missing()
    if reason:
        pytest.skip(reason)
    with sshd.Server(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def job(server, monkeypatch, tmp_path):
    """`job({"hosts": ["a", "b"]})`: a job that is ended with the test."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), *sys.path])))
    monkeypatch.chdir(tmp_path)
    made = []

    def make(meshes, **options):
        given = {"ssh_args": server.options, "monarch_port": 0, "bind_to": "127.0.0.1"}
        made.append(SSHJob(meshes, **{**given, **options}))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def workers(job):
    return [one.pid for one in job._running_hosts]


def test_hosts_are_machines_and_run_processes(job):
    state = job({"trainers": "node[01-02]", "loaders": ["root@other"]}).state(cached_path=None)
    assert [ref.node for ref in state.trainers._refs()] == ["node01", "node02"]
    assert [ref.node for ref in state.loaders._refs()] == ["other"]
    who = state.trainers.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    assert len(set(who.pid.call().get(60).values())) == 4


def test_killing_the_job_ends_workers_and_all_they_started(job, failures):
    made = job({"hosts": ["a", "b"]})
    who = made.state(cached_path=None).hosts.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    pids = [*workers(made), *who.pid.call().get(60).values()]
    made.kill()
    assert gone(pids, 20)
    assert failures.empty()


@pytest.mark.promise("X05")
def test_the_secret_is_not_on_the_command_line(job):
    made = job({"hosts": ["a"]})
    made.state(cached_path=None)
    (pid,) = workers(made)
    seen = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    key = secret.current().give()
    for form in (key, key.hex().encode()):
        assert form not in seen + made.dumps()


_CLIENT = """
import sys, json
from monarch.job import SSHJob
from monarch.mesh import ProcessMesh
from tests.monarch.job.programs import Who
options = json.loads(sys.argv[1])
job = SSHJob({"hosts": ["a"]}, ssh_args=options, monarch_port=0, bind_to="127.0.0.1")
state = job.state(**({} if sys.argv[2:] else {"cached_path": None}))
pid = state.hosts.spawn_procs().spawn("who", Who).pid.call_one().get(60)
print((job._cached or job)._running_hosts[0].pid, pid, flush=True)
sys.stdin.read()
"""


def client(server, *arguments):
    program = start(_CLIENT, json.dumps(server.options), *arguments)
    return program, *map(int, program.stdout.readline().split())


@pytest.mark.parametrize("how", ["in order", "killed"])
def test_a_job_that_is_not_stored_ends_with_its_client(server, job, how):
    program, worker, proc = client(server)
    if how == "killed":
        program.kill()
    program.communicate("" if how == "in order" else None)
    assert gone([worker, proc], 20)


def test_a_stored_job_outlives_its_client_and_is_used_by_the_next(server, job):
    first, worker, proc = client(server, "stored")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert gone([proc], 20)
    assert lives(worker)
    second, same, _ = client(server, "stored")
    assert same == worker
    second.communicate("")
    job_load(DEFAULT_JOB_PATH).kill()
    assert gone([worker], 20)


def test_a_host_that_cannot_be_reached_ends_the_others(job, server):
    nowhere = ["-p", "1", *server.options]
    fails(job({"hosts": ["a"]}, ssh_args=nowhere), "(?s)host a: ssh cannot reach it.*refused")


def test_what_is_waited_for_is_said(job, tmp_path, capfd):
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nsleep 3; exit 1\n")
    slow.chmod(0o755)
    fails(job({"hosts": ["a", "b"]}, python_exe=str(slow)), "host a: its program ended")
    assert "waiting for SSH job: 0 of 2 hosts ready, next a (2 s)" in capfd.readouterr().err


def test_hosts_that_do_not_come_in_time(job, tmp_path):
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 5\n")
    slow.chmod(0o755)
    made = job({"hosts": ["a"]}, python_exe=str(slow), job_start_timeout=1.5)
    fails(made, r"host a does not serve after \d", 20)


def test_a_port_that_is_taken_is_told(job):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        made = job({"hosts": ["a"]}, monarch_port=taken.getsockname()[1])
        fails(made, r"(?s)host a: its program ended with status 1:.*cannot listen on .*in use")


def test_a_lost_machine_is_replaced_by_a_spare_one(server, job, failures):
    mesh = ProcessMesh.from_ssh(
        "node[01-03]", 2, spares=1, ssh_args=server.options, monarch_port=0, bind_to="127.0.0.1"
    )
    try:
        who = mesh.spawn("who", Who)
        before = list(who.pid.call().get(60).values())
        assert (mesh.nodes, mesh.spares) == (["node01", "node02"], ["node03"])
        asked = who.slice(hosts=1).sleep.call(60)
        os.kill(workers(mesh._job)[1], signal.SIGKILL)
        with pytest.raises(ActorCrashError) as raised:
            asked.get(60)
        mesh.replace_node(raised.value.node_id)
        after = list(who.pid.call().get(60).values())
        assert after[:2] == before[:2]
        assert mesh.nodes == ["node01", "node03"]
        pids = workers(mesh._job)
    finally:
        mesh.stop().get(60)
    assert gone(pids, 20)


def test_spares_leave_a_host():
    with pytest.raises(ValueError, match="the number of hosts is 1 or more, not 0"):
        ProcessMesh.from_ssh(["a"], spares=1)


def test_a_key_that_is_not_accepted(job, server, tmp_path):
    text = (server.folder / "ssh_config").read_text().replace("user_key", "no_key")
    (tmp_path / "config").write_text(text)
    fails(job({"hosts": ["a"]}, ssh_args=["-F", str(tmp_path / "config")]), "Permission denied")


def test_a_program_that_does_not_start_is_told_with_its_last_words(job):
    fails(job({"hosts": ["a"]}, python_exe="/no/python"), "(?s)status 127.*/no/python")
    fails(job({"hosts": ["a"]}, python_exe="/bin/echo"), "answers '-m .*, not as a host does")


@pytest.mark.parametrize(
    ("meshes", "said"),
    [
        ({"a b": ["x"]}, "usable as an attribute"),
        ({"a": []}, "name what ssh can reach"),
        ({"a": ["-oProxyCommand=x"]}, "name what ssh can reach"),
        ({"a": ["x"], "b": ["x"]}, "has already"),
        ({"a": "n[1"}, "brackets do not pair"),
    ],
)
def test_hosts_that_cannot_be_are_refused(meshes, said):
    with pytest.raises(ValueError, match=said):
        SSHJob(meshes)
