"""Limits of accounts and qualities of service, by SLURM's own database: progress, or an error."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from ci import slurm_accounts
from monarch.errors import JobError
from monarch.job import SlurmJob
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(slurm_accounts.missing()), reason=slurm_accounts.missing()),
]


@pytest.fixture(scope="module")
def limited_cluster(tmp_path_factory):
    with slurm_accounts.Cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def limited(limited_cluster, monkeypatch, tmp_path):
    """The cluster, found by what this test runs in a folder of its own; all jobs end with it."""
    for name, value in limited_cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), *sys.path])))
    monkeypatch.chdir(tmp_path)
    yield limited_cluster
    limited_cluster.clear()


def made(hosts, **options):
    return SlurmJob({"hosts": hosts}, monarch_port=0, bind_to="127.0.0.1", **options)


@pytest.mark.parametrize(
    ("hosts", "options", "said"),
    [
        (2, {"qos": "small", "gang": True}, "(?s)wait for ever: QOSMaxNodePerJobLimit"),
        (2, {"qos": "strict", "gang": True}, "Job violates accounting/QOS policy"),
        (2, {"qos": "one"}, "Job violates accounting/QOS policy"),
        (1, {"qos": "nope"}, "Invalid qos specification"),
        (1, {"account": "nope"}, "Invalid account or account/partition combination"),
    ],
    ids=["limit", "denied", "quota", "qos", "account"],
)
def test_what_a_limit_never_allows_is_an_error_in_slurms_words(limited, hosts, options, said):
    job = made(hosts, **options)
    began = time.monotonic()
    with pytest.raises(JobError, match=said):
        job.state(cached_path=None)
    assert time.monotonic() - began < 30
    assert not job.active
    assert limited.queue() == []
    assert list(Path(".monarch/slurm").iterdir()) == []


def test_what_a_limit_allows_later_is_progress(limited, capfd):
    first, second = made(1, qos="few"), made(1, qos="few")
    first.state(cached_path=None)
    states, told = [], []

    def said(text):
        told.append(capfd.readouterr().err)
        return text in "".join(told)

    waits = threading.Thread(target=lambda: states.append(second.state(cached_path=None)))
    second.apply()
    waits.start()
    limited._until(lambda: said("1 pending (QOSMaxJobsPerUserLimit)"), "progress", 60)
    assert states == []
    first.kill()
    waits.join(60)
    assert states[0].hosts.initialized.get(60)
    second.kill()
    assert limited.queue() == []


def test_a_limit_that_holds_a_host_back_is_named_when_the_time_is_over(limited):
    job = made(2, qos="few", job_start_timeout=15)
    with pytest.raises(JobError, match=r"1 of 2 hosts ready, 1 pending \(QOSMaxJobsPerUserLimit\)"):
        job.state(cached_path=None)
    assert limited.queue() == []
