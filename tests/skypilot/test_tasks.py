"""SkyPilot itself reads the tasks that are made for it. Session `skypilot` has the package."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest
import yaml

from monarch.job import SkyPilotJob

sky = pytest.importorskip("sky", reason="pip install skypilot; session skypilot runs these")
ROOT = Path(__file__).resolve().parents[2]

JOBS = {
    "least": ({"a": 1}, {}),
    "gang": ({"a": 2, "b": 1}, {"resources": {"accelerators": "H200:8"}, "gang": True}),
    "all": (
        {"a": 2},
        {
            "resources": {"infra": "slurm", "cpus": "4+", "memory": 16, "labels": {"team": "a"}},
            "cluster_name": "train-1",
            "monarch_port": 26600,
            "python_exe": "~/venv/bin/python",
            "setup_commands": "uv venv\nif true; then\n  echo 'a: b' # c\nfi",
            "workdir": ".",
            "file_mounts": {"/data": "."},
            "envs": {"A": "b c", "YES": "yes", "N": "1", "TEXT": "a\nb\n"},
        },
    ),
    "choice": ({"a": 1}, {"resources": {"any_of": [{"use_spot": True}, {"use_spot": False}]}}),
}


@pytest.fixture(params=JOBS)
def job(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    meshes, options = JOBS[request.param]
    made = SkyPilotJob(meshes, **options)
    name = options.get("cluster_name", "monarch")
    secret = tmp_path / ".monarch/skypilot" / name / "secret"
    secret.parent.mkdir(parents=True)
    secret.write_bytes(bytes(32))  # SkyPilot looks for what is to be mounted
    return made


def test_skypilots_parser_takes_every_task(job):
    for cluster, text in job.tasks().items():
        task = sky.Task.from_yaml_config(yaml.safe_load(text))
        assert task.num_nodes == (sum(job._meshes.values()) if job._gang else 1)
        assert task.setup == job._setup
        assert task.run.splitlines()[-1].startswith("exec ")
        assert f"~/.monarch/{cluster}/secret" in task.file_mounts
        assert job._envs.items() <= task.envs.items()


def test_skypilots_parser_takes_the_file(job, tmp_path):
    for text in job.tasks().values():
        path = tmp_path / "task.yaml"
        path.write_text(text, encoding="utf-8")
        assert sky.Task.from_yaml(str(path)).name == "monarch"


def test_the_parser_is_one_that_refuses():
    (text,) = SkyPilotJob({"a": 1}).tasks().values()
    document = yaml.safe_load(text)
    with pytest.raises(ValueError, match="num_nodez"):
        sky.Task.from_yaml_config({**document, "num_nodez": 1})


def test_resources_of_skypilots_own_are_taken():
    given = sky.Resources(cpus="4+", use_spot=True)
    (text,) = SkyPilotJob({"a": 1}, given).tasks().values()
    document = yaml.safe_load(text)
    assert {"cpus": "4+", "use_spot": True}.items() <= document["resources"].items()


@pytest.mark.parametrize(
    "name",
    ["launch", "status", "queue", "get", "down", "api_status", "api_cancel", "tail_logs"],
)
def test_the_stand_in_takes_no_argument_that_skypilot_does_not(name, monkeypatch, tmp_path):
    """What the suite runs against a stand-in is called as SkyPilot is."""
    monkeypatch.setenv("SKY_STANDIN", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT / "ci/standins"))
    real = inspect.signature(inspect.unwrap(getattr(sky, name)))
    monkeypatch.delitem(sys.modules, "sky")
    import sky as other  # noqa: PLC0415 - the stand-in

    assert "stand-in" in other.__version__
    theirs = inspect.signature(getattr(other, name))
    for index, one in enumerate(theirs.parameters.values()):
        names = list(real.parameters)
        assert one.name in names or (index < len(names) and one.default is one.empty)
