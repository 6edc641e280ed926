"""The tasks that SkyPilot is given, as YAML. SkyPilot's own parser reads them in tests/skypilot."""

from __future__ import annotations

import pytest
import yaml

from monarch._job.sky.host import node_id
from monarch._job.sky.task import task
from monarch._job.sky.task import yaml as written
from monarch.job import SkyPilotJob

BASE = {"python": "python", "port": 22222, "lease": 300, "secret": "/tmp/s"}


def read(document):
    return yaml.safe_load(written(document))


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "two words ",
        "#no comment",
        "a: b",
        "yes",
        "null",
        "~",
        "1.5",
        "'",
        '"',
        "é🎉",
        "a\nb",
        "a\nb\n",
        "a\nb\n\n",
        "  a\nb\n",
        "\na\n",
        "a\n  b\n",
        "a\tb\n",
        "- x\n? y\n",
        "%x\n",
        1,
        1.5,
        True,
        None,
        [],
        ["a", {"b": "c"}],
        {},
        {"a": {"b": "c\nd\n"}},
    ],
)
def test_what_is_written_is_what_a_reader_of_yaml_reads(value):
    assert read({"key": value, "yes": {"1": value}}) == {"key": value, "yes": {"1": value}}


def test_a_task_has_what_was_asked_for_and_no_more():
    found = read(task("c-0", 1, **BASE, resources={"accelerators": "H200:8"}, setup="a\nb\n"))
    assert set(found) == {"name", "num_nodes", "resources", "file_mounts", "setup", "run"}
    assert found["file_mounts"] == {"~/.monarch/c-0/secret": "/tmp/s"}
    assert found["setup"] == "a\nb\n"
    assert found["run"] == (
        "chmod 600 ~/.monarch/c-0/secret\n"
        "exec python -m monarch._job.sky.host ~/.monarch/c-0/secret 22222 c-0 300\n"
    )


def test_the_hosts_program_is_the_foreground_of_its_step():
    """What runs beside it, or below a shell, may be reaped with the step or outlive it."""
    assert task("c", 1, **BASE)["run"].splitlines()[-1].startswith("exec ")


def test_an_interpreter_with_a_space_in_its_path_is_one_word():
    run = task("c", 1, **{**BASE, "python": "/a b/python"})["run"]
    assert "exec '/a b/python' -m" in run


@pytest.mark.parametrize(
    ("options", "clusters", "nodes"),
    [({}, ["monarch-0", "monarch-1", "monarch-2"], 1), ({"gang": True}, ["monarch"], 3)],
)
def test_hosts_are_clusters_of_their_own_or_one(options, clusters, nodes):
    tasks = SkyPilotJob({"a": 2, "b": 1}, **options).tasks()
    assert list(tasks) == clusters
    assert {yaml.safe_load(text)["num_nodes"] for text in tasks.values()} == {nodes}


def test_no_time_limit_is_ever_asked_for():
    """Where SkyPilot submits to SLURM, an unlimited --time keeps a job from being backfilled."""
    assert "time" not in SkyPilotJob({"a": 1}).tasks()["monarch-0"].replace("runtime", "")


def test_nodes_of_one_cluster_have_ids_of_their_own():
    assert node_id("c", 0, 1) == "c"
    assert [node_id("c", rank, 2) for rank in range(2)] == ["c-0", "c-1"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"meshes": {"a b": 1}}, "usable as an attribute"),
        ({"meshes": {"a": 0}}, "1 or more"),
        ({"cluster_name": "A_b"}, "lowercase letters"),
        ({"monarch_port": 0}, "1 to 65535"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options, said):
    with pytest.raises(ValueError, match=said):
        SkyPilotJob(**{"meshes": {"a": 1}, **options})


def test_resources_of_another_kind_are_refused():
    with pytest.raises(TypeError, match=r"resources is a mapping such as .*, not str"):
        SkyPilotJob({"a": 1}, "H200:8")
