"""What all jobs share: applied once, stored, found again, ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from monarch.errors import JobStateError
from monarch.job import (
    DEFAULT_JOB_PATH,
    JobState,
    JobTrait,
    LocalJob,
    job_load,
    job_loads,
    load_current_job,
    set_current_job,
)


class FolderJob(JobTrait):
    """A job whose "host" is a file: there while it runs."""

    def __init__(self, where, size=1) -> None:
        super().__init__()
        self.where = str(where)
        self.size = size

    def _create(self, client_script):  # noqa: ARG002 - of every job
        with Path(self.where).open("a", encoding="ascii") as file:
            file.write(f"{self.size}\n")

    def _state(self):
        if not Path(self.where).exists():
            raise RuntimeError("the file is gone")
        return JobState({"hosts": "a mesh"})

    def _kill(self):
        Path(self.where).unlink(missing_ok=True)

    def can_run(self, spec):
        return isinstance(spec, FolderJob) and spec.size == self.size and Path(self.where).exists()


@pytest.fixture
def where(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "host"


def test_a_job_is_applied_once(where):
    job = FolderJob(where)
    assert not job.active
    assert job.apply_id is None
    job.apply()
    first = job.apply_id
    job.apply()
    assert job.active
    assert job.apply_id == first
    assert where.read_text() == "1\n"


def test_state_applies_the_job_and_stores_it_by_default(where):
    job = FolderJob(where)
    assert job.state().hosts == "a mesh"
    assert where.exists()
    assert job_load(DEFAULT_JOB_PATH).apply_id == job.apply_id


def test_state_without_a_path_stores_nothing(where):
    FolderJob(where).state(cached_path=None)
    assert where.exists()
    assert not Path(".monarch").exists()


def test_a_stored_job_that_is_alive_and_the_same_is_used_again(where):
    first = FolderJob(where)
    first.state()
    again = FolderJob(where)
    again.state()
    assert where.read_text() == "1\n"
    assert again.active
    assert again.apply_id == first.apply_id


def test_a_stored_job_that_cannot_run_this_one_is_ended(where):
    FolderJob(where).state()
    second = FolderJob(where, size=2)
    second.state()
    assert where.read_text() == "2\n"
    assert job_load(DEFAULT_JOB_PATH).apply_id == second.apply_id


def test_a_job_that_ended_by_itself_is_applied_anew(where):
    FolderJob(where).state()
    where.unlink()
    FolderJob(where).state()
    assert where.exists()


def test_killing_ends_the_job_also_one_that_was_found(where):
    FolderJob(where).state()
    again = FolderJob(where)
    again.state()
    again.kill()
    assert not where.exists()
    assert not again.active
    again.kill()
    again.apply()
    assert where.exists()


def test_a_job_that_cannot_be_stored_is_not_started(where):
    job = FolderJob(where)
    job.thing = object()
    with pytest.raises(JobStateError, match=r"FolderJob\.thing holds a object"):
        job.state()
    assert not where.exists()


def test_a_job_whose_hosts_cannot_be_had_is_ended(where, monkeypatch):
    job = FolderJob(where)

    def fail():
        raise RuntimeError("no hosts")

    monkeypatch.setattr(FolderJob, "_state", lambda _self: fail())
    with pytest.raises(RuntimeError, match="no hosts"):
        job.state()
    assert not where.exists()
    assert not Path(DEFAULT_JOB_PATH).exists()


def test_a_stored_job_knows_that_it_runs(where):
    job = FolderJob(where)
    assert not job_loads(job.dumps()).active
    job.apply()
    found = job_loads(job.dumps())
    assert found.active
    found.kill()
    assert not where.exists()


def test_a_mesh_that_the_job_has_not_is_named(where):
    state = FolderJob(where).state(cached_path=None)
    with pytest.raises(AttributeError, match="no mesh 'trainers'; its meshes are hosts"):
        _ = state.trainers
    assert "hosts" in dir(state)
    assert state.dashboard_url is state.admin_url is state.query_engine_client is None


def test_the_extension_points_have_to_be_given():
    with pytest.raises(TypeError, match="_create"):
        JobTrait()


def test_a_local_job_is_this_host_under_every_name():
    from monarch.actor import this_host  # noqa: PLC0415 - native code

    state = LocalJob(["a", "b"]).state(cached_path=None)
    assert state.a == state.b == this_host()


def test_a_program_runs_as_the_client_of_a_local_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    Path("client.py").write_text(
        "from monarch.job import LocalJob\nprint(sorted(LocalJob(['x']).state()._hosts))\n",
        encoding="utf-8",
    )
    job = LocalJob(["mesh"])
    with pytest.raises(ValueError, match="no client program"):
        _ = job.process
    job.apply(client_script="client.py")
    assert job.process.wait(60) == 0
    (log,) = Path(".monarch/logs").glob("job_*/stdout.log")
    assert log.read_text() == "['mesh']\n"
    job.kill()


def test_the_current_job_is_named_and_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("ajobofmine.py").write_text(
        "from monarch.job import LocalJob\njob = LocalJob(['x'])\nother = 5\n", encoding="utf-8"
    )
    with pytest.raises(FileNotFoundError, match="set_current_job"):
        load_current_job()
    set_current_job("ajobofmine.job")
    assert isinstance(load_current_job(), LocalJob)
    assert Path(DEFAULT_JOB_PATH).is_symlink()
    load_current_job().state()
    assert Path(".monarch/default/state.json").exists()
    set_current_job("ajobofmine.other")
    with pytest.raises(TypeError, match="int and not a job"):
        load_current_job()
    set_current_job("ajobofmine.missing")
    with pytest.raises(AttributeError, match="no missing"):
        load_current_job()
    for name in ("plain", ".x", "x."):
        with pytest.raises(ValueError, match=r"module\.attribute"):
            set_current_job(name)


def test_importing_jobs_starts_nothing():
    code = "import monarch.job, monarch._actor.process as p; print(p.running_process())"
    env = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
    )
    assert ran.stdout == "None\n"
