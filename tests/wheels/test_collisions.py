"""Two real wheels in one environment."""

from __future__ import annotations

from itertools import permutations

import pytest

from ci import built
from tests.monarch.hand_wheels import make_environment

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


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_second_is_refused_by_name_and_the_printed_commands_repair_it(
    tmp_path, dist, first, second
):
    environment = make_environment(tmp_path / "environment", dist)
    for platform in (first, second):
        environment.pip("install", "--no-deps", f"monarch-{platform}")
    refused = environment.run("-c", "import monarch")
    assert refused.returncode == 1
    assert "ConflictError" in refused.stderr
    assert f"monarch-{first}" in refused.stderr
    assert f"monarch-{second}" in refused.stderr
    environment.run_printed_commands(refused.stderr.replace(" install ", " install --no-deps "))
    assert environment.run("-c", "import monarch._core").returncode == 0
    assert environment.run("-m", f"monarch_{second}").returncode == 0


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_what_is_left_after_one_was_removed_tells(tmp_path, dist, first, second):
    environment = make_environment(tmp_path / "environment", dist)
    for platform in (first, second):
        environment.pip("install", "--no-deps", f"monarch-{platform}")
    environment.pip("uninstall", "--yes", f"monarch-{first}")
    told = environment.run("-m", f"monarch_{second}")
    assert told.returncode == 1
    assert "monarch/__init__.py: missing" in told.stdout
    environment.run_printed_commands(told.stdout)
    assert environment.run("-c", "import monarch._core").returncode == 0
