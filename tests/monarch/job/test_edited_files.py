"""Files of jobs that somebody has edited: each says what is wrong with it, and is put right."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from monarch._job.fields import annotated
from monarch._job.local import BatchJob
from monarch._job.process import Worker
from monarch._job.sky.waiting import Host
from monarch._job.slurm.folder import Arrival, JobFolder, Place
from monarch._job.spmd import SPMDJob
from monarch._job.ssh.remote import Running
from monarch.errors import JobError, JobStateError
from monarch.job import (
    LocalJob,
    ProcessJob,
    SkyPilotJob,
    SlurmJob,
    SSHJob,
    job_load,
    load_current_job,
    set_current_job,
)
from monarch.job.kubernetes import ImageSpec, KubeConfig, KubernetesJob


def process_job():
    made = ProcessJob({"hosts": 1}, {"A": "b"})
    made._workers = {"hosts": [Worker(1, "ipc://@a", 2, "hosts_0")]}
    return made


def ssh_job():
    made = SSHJob({"hosts": ["a"]})
    made._running_hosts = [Running("a", "tcp://10.0.0.1:1", 2, 3)]
    return made


def kubernetes_job():
    made = KubernetesJob("team", 60, KubeConfig.from_path("/there/config"))
    made.add_mesh("w", 2, image_spec=ImageSpec("an:image", {"cpu": 2}))
    return made


def skypilot_job():
    made = SkyPilotJob({"hosts": 2}, {"cpus": 2})
    made._hosts = {0: Host("c-0", 0, "request")}
    return made


JOBS = {
    "process": process_job,
    "local": LocalJob,
    "client of a local": lambda: BatchJob(LocalJob()),
    "ssh": ssh_job,
    "slurm": lambda: SlurmJob({"hosts": 2}, time_limit=60),
    "kubernetes": kubernetes_job,
    "skypilot": skypilot_job,
    "spmd": lambda: SPMDJob(["torchrun", "train.py"]),
}
FIELDS = [
    (kind, name) for kind, make in JOBS.items() for name in json.loads(make().dumps())["fields"]
]


@pytest.fixture
def edited(tmp_path):
    """`edited(job, change)`: the state file of a job after `change` has had its document."""

    def make(job, change):
        path = tmp_path / "state.json"
        job.dump(path)
        document = json.loads(path.read_bytes())
        change(document)
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return make


def refused(path, *said):
    with pytest.raises(JobStateError) as raised:
        job_load(path)
    text = str(raised.value)
    assert text.startswith(str(path))
    for one in (*said, "remove it"):
        assert one in text, text


@pytest.mark.parametrize("kind", JOBS)
def test_a_file_that_nobody_has_edited_is_read(edited, kind):
    found = job_load(edited(JOBS[kind](), lambda _: None))
    assert found.dumps() == JOBS[kind]().dumps()


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_a_field_that_is_missing_is_named(edited, kind, name):
    job = JOBS[kind]()
    path = edited(job, lambda document: document["fields"].pop(name))
    refused(path, f'lacks the field "{name}"', type(job).__name__)


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_a_field_of_another_type_is_named(edited, kind, name):
    job = JOBS[kind]()
    path = edited(job, lambda document: document["fields"].update({name: [["wrong"]]}))
    refused(path, name, "wrong", "was wanted", type(job).__name__)


@pytest.mark.parametrize("kind", JOBS)
def test_every_field_of_a_job_of_this_package_has_a_type(kind):
    job = JOBS[kind]()
    assert annotated(type(job)).keys() >= json.loads(job.dumps())["fields"].keys()


def test_what_is_wrong_within_a_field_is_named_by_its_place(edited):
    path = edited(ssh_job(), lambda document: document["fields"]["_meshes"].update(hosts=[5]))
    refused(path, "._meshes['hosts'][0] of a SSHJob is 5 (int), where str was wanted")
    path = edited(ssh_job(), lambda document: document["fields"]["_meshes"].update(hosts="a"))
    refused(path, "._meshes['hosts'] of a SSHJob is 'a' (str), where list[str] was wanted")
    path = edited(ssh_job(), lambda document: document["fields"].update(_port=True))
    refused(path, "._port of a SSHJob is True (bool), where int was wanted")


def test_a_record_within_a_field_is_looked_at_as_well(edited):
    def host(document):
        return document["fields"]["_running_hosts"][0]["$dataclass"]["fields"]

    refused(
        edited(ssh_job(), lambda document: host(document).pop("pid")),
        '_running_hosts[0] lacks the field "pid" (int) of a Running',
    )
    refused(
        edited(ssh_job(), lambda document: host(document).update(pid="5")),
        "_running_hosts[0].pid of a Running is '5' (str), where int was wanted",
    )
    refused(
        edited(ssh_job(), lambda document: host(document).update(pdi=5)),
        '"pdi", which is no field of a Running (these are address, host, pid, started)',
    )


def test_a_class_that_is_not_there_is_named(edited):
    path = edited(ssh_job(), lambda document: document.update({"class": "monarch.jobs:SSHJob"}))
    refused(path, 'cannot find the class "monarch.jobs:SSHJob"')
    abstract = {"class": "monarch._job.job:JobTrait"}
    refused(edited(ssh_job(), lambda document: document.update(abstract)), "is not a job")


@pytest.mark.parametrize("schema", [2, None, "1"])
def test_another_schema_is_named_with_the_one_that_is_read(edited, schema):
    path = edited(ssh_job(), lambda document: document.update(schema=schema))
    refused(path, f'"schema" {schema!r}', "reads 1", "the release that wrote it")


def test_a_kind_of_value_that_this_release_has_not_is_named(edited):
    path = edited(ssh_job(), lambda document: document["fields"].update(_port={"$port": 1}))
    refused(path, ': _port has "$port", which this release does not know')


def test_what_could_not_be_read_again_is_refused_before_anything_starts(tmp_path):
    made = SSHJob({"hosts": ["a"]}, job_start_timeout="60")
    with pytest.raises(JobStateError, match=r"^SSHJob\._job_start_timeout of a SSHJob is '60'"):
        made.state(cached_path=tmp_path / "state.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "holds no object"),
        ('{"schema": 2, "hosts": {}}', '"schema" 2'),
        ('{"schema": 1}', "hosts None"),
        ('{"schema": 1, "hosts": {"x": {}}}', 'a host "x", which is no rank'),
        ('{"schema": 1, "hosts": {"0": 1}}', "hosts[0] is 1 (int)"),
        ('{"schema": 1, "hosts": {"0": {"job": "7"}}}', 'hosts[0] lacks the field "generation"'),
    ],
)
def test_a_plan_of_a_slurm_job_that_was_edited_is_told(tmp_path, text, said):
    folder = JobFolder(tmp_path / "job")
    folder.make()
    (folder.path / "plan.json").write_text(text, encoding="utf-8")
    with pytest.raises(JobError, match=re.escape(f"{folder.path / 'plan.json'}")) as raised:
        folder.planned()
    assert said in str(raised.value)


def test_where_a_host_of_a_slurm_job_listens_is_looked_at(tmp_path):
    folder = JobFolder(tmp_path / "job")
    folder.make()
    places = {0: Place("7_0")}
    folder.arrive(0, 0, Arrival("tcp://127.0.0.1:1", "n1", "n1", 5))
    path = folder.path / "host-0-0-0.json"
    path.write_text(path.read_text(encoding="utf-8").replace("5", '"5"'), encoding="utf-8")
    with pytest.raises(JobStateError, match=r"host-0-0-0\.json\.pid of a Arrival is '5' \(str\)"):
        folder.arrivals(places)


@pytest.mark.parametrize("text", ["", "job", "train.", b"\xff"])
def test_a_name_of_the_current_job_that_was_edited_is_told(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    set_current_job("train.job")
    spec = Path(".monarch/default/spec")
    spec.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(JobStateError, match=r"^\.monarch/default/spec.*set_current_job"):
        load_current_job()


def test_a_module_of_the_current_job_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    set_current_job("nosuchmodule.job")
    with pytest.raises(ModuleNotFoundError, match=r"nosuchmodule.*default/spec names nosuch.*set_"):
        load_current_job()
