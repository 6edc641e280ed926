"""How a host of a SLURM job learns that it is not wanted any more, without asking SLURM."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from monarch._job.slurm import node
from monarch._job.slurm.folder import Arrival, JobFolder, Place
from monarch._job.slurm.script import Resources, gang_job, host_job


@pytest.fixture
def folder(tmp_path):
    made = JobFolder(tmp_path / "job")
    made.make()
    made.plan({0: Place("7_0"), 1: Place("7_1")})
    return made


def arrival(restart=0):
    return Arrival("tcp://127.0.0.1:1", "n1", "n1", os.getpid(), restart)


def test_a_host_that_is_planned_is_wanted(folder):
    assert node._Place(folder, 1, 0, 0).wanted()


def test_a_host_that_is_not_in_the_plan_is_not(folder):
    assert not node._Place(folder, 2, 0, 0).wanted()


def test_a_host_whose_place_another_took_is_not(folder):
    here = node._Place(folder, 1, 0, 0)
    folder.plan({0: Place("7_0"), 1: Place("8", 1, "n1")})
    assert not here.wanted()
    assert node._Place(folder, 1, 1, 0).wanted()


@pytest.mark.promise("S06")
def test_a_host_that_slurm_started_again_elsewhere_is_not(folder):
    """Its node may be one that SLURM calls down and whose programs go on."""
    first, second = node._Place(folder, 1, 0, 0), node._Place(folder, 1, 0, 1)
    folder.arrive(1, 0, arrival(0))
    assert first.wanted()
    folder.arrive(1, 0, arrival(1))
    assert not first.wanted()
    assert second.wanted()
    assert folder.arrivals(folder.planned())[1].restart == 1


def test_hosts_of_a_client_that_vanished_are_not(folder, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(node, "time", SimpleNamespace(monotonic=lambda: now[0]))
    here = node._Place(folder, 0, 0, 0)
    assert here.wanted()
    now[0] += node.EXPIRES - 1
    assert here.wanted()
    now[0] += 2
    assert not here.wanted()
    folder.renew()
    assert here.wanted()
    folder.keep()  # stored: it is to outlive its client
    assert here.wanted()
    now[0] += 10 * node.EXPIRES
    assert here.wanted()


def test_a_host_of_a_job_that_was_ended_is_not(folder):
    here = node._Place(folder, 0, 0, 0)
    folder.remove(logs=True)
    assert not here.wanted()


def test_a_shared_folder_that_is_away_for_a_while_ends_no_host(folder, monkeypatch):
    here = node._Place(folder, 0, 0, 0)

    def fails():
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(folder, "planned", fails)
    assert here.wanted()


def test_a_time_limit_is_sent_only_where_it_was_given(tmp_path):
    """An unlimited --time keeps a job from being backfilled."""
    for make in (lambda: host_job(["x"], tmp_path, "%a"), lambda: gang_job(["x"], tmp_path, 2)):
        options, text = make()
        assert "--time" not in " ".join([*Resources().options(), *options, text])
    assert "--time=10" in Resources(time_limit="10").options()


def test_the_hosts_program_is_the_batch_scripts_own_process(tmp_path):
    """What is started beside it is reaped with the step that started it."""
    for _options, text in (host_job(["x"], tmp_path, "%a"), gang_job(["x"], tmp_path, 2)):
        assert text.splitlines()[-1].startswith("exec ")
