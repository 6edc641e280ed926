"""Jobs of worker processes on this machine: found again, and ended with all that they run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from monarch.errors import JobError
from monarch.job import DEFAULT_JOB_PATH, LocalJob, ProcessJob, job_load
from tests.monarch.job.programs import Who, children, gone, lives, start


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path.cwd())
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    if Path(DEFAULT_JOB_PATH).exists():
        job_load(DEFAULT_JOB_PATH).kill()


@pytest.fixture
def job():
    """`job({"hosts": 2})`: a job that is ended with the test."""
    made = []

    def make(*arguments, **options):
        made.append(ProcessJob(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def workers(job):
    return [worker.pid for mesh in job._workers.values() for worker in mesh]


def test_each_mesh_has_its_hosts(job):
    made = job({"trainers": 2, "loaders": 1})
    state = made.state(cached_path=None)
    assert dict(state.trainers.extent) == {"hosts": 2}
    assert dict(state.loaders.extent) == {"hosts": 1}
    who = state.trainers.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    assert [dict(place) for place in who.place.call().get(60).values()] == [
        {"hosts": host, "gpus": gpu} for host in range(2) for gpu in range(2)
    ]


@pytest.mark.report("115")
def test_killing_the_job_ends_workers_and_all_they_started(job, failures):
    made = job({"hosts": 2})
    hosts = made.state(cached_path=None).hosts
    who = hosts.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    pids = [*workers(made), *who.pid.call().get(60).values()]
    assert len(set(pids)) == 6
    below = [child for pid in workers(made) for child in children(pid)]
    made.kill()
    assert gone([*pids, *below], 20)
    assert not made.active
    assert failures.empty()


def test_a_job_is_ended_in_an_event_loop_without_being_told_to_await(job, recwarn):
    async def use() -> None:
        made = job({"hosts": 1})
        who = made.state(cached_path=None).hosts.spawn_procs().spawn("who", Who)
        await who.pid.call_one()
        made.kill()

    asyncio.run(use())
    assert [str(warning.message) for warning in recwarn] == []


def test_workers_get_the_variables_of_the_job(job):
    made = job({"hosts": 1}, env={"FLAVOUR": "mint"})
    procs = made.state(cached_path=None).hosts.spawn_procs()
    assert procs.spawn("who", Who).variable.call_one("FLAVOUR").get(60) == "mint"


_CLIENT = """
import sys
from monarch.job import ProcessJob
from tests.monarch.job.programs import Who
job = ProcessJob({"hosts": 1}, env={"A": sys.argv[1]})
state = job.state(**({} if sys.argv[2:] else {"cached_path": None}))
who = state.hosts.spawn_procs().spawn("who", Who)
pid = who.pid.call_one().get(60)
print(job._running._workers["hosts"][0].pid, pid, flush=True)
sys.stdin.read()
"""


def client(*arguments):
    program = start(_CLIENT, *arguments)
    return program, *map(int, program.stdout.readline().split())


def test_a_stored_job_outlives_its_client_and_is_used_by_the_next(folder):
    first, worker, proc = client("1", "stored")
    first.communicate("")
    assert gone([proc], 20)
    assert lives(worker)
    second, same, _ = client("1", "stored")
    assert same == worker
    second.communicate("")
    job_load(DEFAULT_JOB_PATH).kill()
    assert gone([worker], 20)


def test_a_stored_job_of_another_kind_is_ended_first(folder):
    first, worker, _ = client("1", "stored")
    first.communicate("")
    second, other, _ = client("2", "stored")
    assert other != worker
    assert gone([worker], 20)
    second.communicate("")
    job_load(DEFAULT_JOB_PATH).kill()
    assert gone([other], 20)


@pytest.mark.parametrize("how", ["in order", "killed"])
def test_a_job_that_is_not_stored_ends_with_its_client(folder, monkeypatch, how):
    monkeypatch.setenv("TMPDIR", str(folder))
    program, worker, proc = client("1")
    assert list(folder.glob("monarch-job-*"))
    if how == "killed":
        program.kill()
    program.communicate("" if how == "in order" else None)
    assert gone([worker, proc], 20)
    if how == "in order":
        assert list(folder.glob("monarch-job-*")) == []


def test_the_state_file_is_json_without_a_secret(folder, job):
    made = job({"hosts": 1})
    made.state()
    path = Path(DEFAULT_JOB_PATH)
    document = json.loads(path.read_bytes())
    assert document["fields"]["_meshes"] == {"hosts": 1}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_worker_that_died_is_named_with_its_last_words(folder, job):
    made = job({"hosts": 2})
    made.state()
    victim = workers(made)[1]
    os.kill(victim, signal.SIGKILL)
    assert gone([victim], 20)
    with pytest.raises(JobError, match=rf"1 of the job's hosts .* hosts_1 \(pid {victim}\) ended"):
        made.state()


def test_a_stored_job_with_a_dead_worker_is_replaced(folder, job):
    first = job({"hosts": 1})
    first.state()
    (victim,) = workers(first)
    os.kill(victim, signal.SIGKILL)
    assert gone([victim], 20)
    second = job({"hosts": 1})
    second.state().hosts.initialized.get(60)
    assert workers(second) != [victim]


def test_a_later_process_with_the_same_pid_is_not_taken_for_the_worker(folder, job):
    made = job({"hosts": 1})
    made.state()
    found = job_load(DEFAULT_JOB_PATH)
    (worker,) = found._workers["hosts"]
    made.state().hosts.initialized.get(60)  # later than the worker by what the kernel can tell
    other = subprocess.Popen(["sleep", "60"])
    earlier = worker.started - 1  # the kernel counts in hundredths, and both may be in the same one
    found._workers["hosts"] = [type(worker)(other.pid, worker.address, earlier, worker.node)]
    assert not found.can_run(made)
    found.kill()
    assert other.poll() is None
    other.kill()
    other.wait()


@pytest.mark.parametrize(
    ("meshes", "said"),
    [
        ({"a b": 1}, "usable as an attribute"),
        ({"a": 0}, "1 or more"),
        ({"a": "2"}, "1 or more"),
    ],
)
def test_meshes_that_cannot_be_are_refused(meshes, said):
    with pytest.raises(ValueError, match=said):
        ProcessJob(meshes)


def test_what_is_no_dictionary_of_hosts_is_refused_with_one_that_is():
    with pytest.raises(TypeError, match=r'ProcessJob\(meshes=3\): it is a dict, as {"workers": 2}'):
        ProcessJob(3)
    with pytest.raises(TypeError, match=r"ProcessJob\(env=3\)"):
        ProcessJob({"a": 1}, 3)
    for names in (3, "hosts", [3]):
        with pytest.raises(TypeError, match="LocalJob takes the names of meshes"):
            LocalJob(names)


def test_it_runs_no_client_program():
    with pytest.raises(JobError, match="LocalJob"):
        ProcessJob({"hosts": 1}).apply(client_script="x.py")
