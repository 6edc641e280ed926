"""Fixtures that several parts of the suite share."""

from __future__ import annotations

import base64
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from ci import built
from ci import slurm as slurm_rig

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

ROOT = Path(__file__).resolve().parent.parent

pytest_plugins = ["monarch.testing"]

# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As jobs in the background are started; what the tests start is not to be deaf to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, so that no worker is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test fails that shows the secret of the process that runs it, whatever it is about."""
    report = yield
    module = sys.modules.get("monarch._link.secret")
    held = getattr(module, "_current", None)
    if held is not None:
        shown = "".join([*(text for _, text in report.sections), report.longreprtext])
        key = held._key
        forms = (key.hex(), base64.b64encode(key).decode(), repr(key)[2:-1])
        if any(form in shown for form in forms):
            report.outcome, report.sections = "failed", []
            report.longrepr = f"the secret is in what is shown of {report.nodeid}"
    return report


@pytest.fixture(scope="session")
def built_wheel() -> Callable[[str], Path]:
    """`built_wheel("rocm")`: the repaired wheel of this tree, built once for each content."""
    return built.wheel


@pytest.fixture(scope="module")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm_rig.Cluster]:
    """A cluster of SLURM's own daemons, with five nodes on this machine."""
    reason = slurm_rig.missing()
    if reason:
        pytest.skip(reason)
    with slurm_rig.Cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def slurm(
    slurm_cluster: slurm_rig.Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[slurm_rig.Cluster]:
    """The cluster, found by what this test runs in a folder of its own; all jobs end with it."""
    for name, value in slurm_cluster.environment.items():
        monkeypatch.setenv(name, value)
    # What runs on the nodes finds the modules of the tests as this process does.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), *sys.path])))
    monkeypatch.chdir(tmp_path)
    yield slurm_cluster
    slurm_cluster.clear()
