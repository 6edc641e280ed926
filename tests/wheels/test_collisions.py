"""Two real wheels in one environment: the wheels are those that the build sessions left in dist."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from tests.monarch.hand_wheels import make_environment

DIST = Path(__file__).resolve().parents[2] / "dist"


def platforms() -> list[str]:
    """Platforms of the wheels in dist that this interpreter can install."""
    mine = set(sys_tags())
    found = set()
    for path in DIST.glob("monarch_*.whl"):
        name, _, _, tags = parse_wheel_filename(path.name)
        if mine & tags:
            found.add(name.removeprefix("monarch-"))
    return sorted(found)


PAIRS = list(permutations(platforms(), 2))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.promise("B12"),
    pytest.mark.skipif(
        not PAIRS, reason="dist holds no two wheels: run nox -s build-cpu build-rocm"
    ),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_second_is_refused_by_name_and_the_printed_commands_repair_it(tmp_path, first, second):
    environment = make_environment(tmp_path / "environment", DIST)
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
def test_what_is_left_after_one_was_removed_tells(tmp_path, first, second):
    environment = make_environment(tmp_path / "environment", DIST)
    for platform in (first, second):
        environment.pip("install", "--no-deps", f"monarch-{platform}")
    environment.pip("uninstall", "--yes", f"monarch-{first}")
    told = environment.run("-m", f"monarch_{second}")
    assert told.returncode == 1
    assert "monarch/__init__.py: missing" in told.stdout
    environment.run_printed_commands(told.stdout)
    assert environment.run("-c", "import monarch._core").returncode == 0
