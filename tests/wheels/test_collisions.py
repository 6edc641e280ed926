"""Two real wheels in one environment."""

from __future__ import annotations

import shutil
from itertools import permutations

import pytest

from ci import built
from tests.monarch.hand_wheels import Environment, make_environment

PAIRS = list(permutations(built.PLATFORMS, 2))
pytestmark = [pytest.mark.slow, pytest.mark.promise("B12")]


@pytest.fixture(scope="module")
def dist(tmp_path_factory, built_wheel):
    """One folder with the three wheels."""
    folder = tmp_path_factory.mktemp("dist")
    for platform in built.PLATFORMS:
        wheel = built_wheel(platform)
        (folder / wheel.name).symlink_to(wheel)
    return folder


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def pair(request, tmp_path_factory, dist):
    """An environment into which one was installed and then another, and their names."""
    environment = make_environment(tmp_path_factory.mktemp("pair") / "environment", dist)
    for platform in request.param:
        environment.pip("install", "--no-deps", f"monarch-{platform}")
    return environment, *request.param


@pytest.fixture
def both(pair, tmp_path):
    """The same in a copy that the test may change."""
    environment, first, second = pair
    place = tmp_path / "environment"
    shutil.copytree(environment.root, place, symlinks=True)
    return Environment(place, environment.wheels), first, second


def test_the_second_is_refused_by_name_and_the_printed_commands_repair_it(both):
    environment, first, second = both
    refused = environment.run("-c", "import monarch")
    assert refused.returncode == 1
    assert "ConflictError" in refused.stderr
    assert f"monarch-{first}" in refused.stderr
    assert f"monarch-{second}" in refused.stderr
    environment.run_printed_commands(refused.stderr.replace(" install ", " install --no-deps "))
    assert environment.run("-c", "import monarch._core").returncode == 0
    assert environment.run("-m", f"monarch_{second}").returncode == 0


def test_what_is_left_after_one_was_removed_tells(both):
    environment, first, second = both
    environment.pip("uninstall", "--yes", f"monarch-{first}")
    told = environment.run("-m", f"monarch_{second}")
    assert told.returncode == 1
    assert "monarch/__init__.py: missing" in told.stdout
    environment.run_printed_commands(told.stdout)
    assert environment.run("-c", "import monarch._core").returncode == 0
