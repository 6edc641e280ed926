"""The same sources in two folders give the same distributions."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from ci import built
from port.build import info
from tests.wheels.conftest import command, environment

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "CMakeLists.txt", ".gitignore")
FOLDERS = ("cmake", "port", "runtime", "native")

pytestmark = [pytest.mark.slow, pytest.mark.promise("B10")]


def copied(place: Path) -> Path:
    """This checkout's sources once more, in `place`, with times of their own."""
    tree = place / "tree"
    tree.mkdir(parents=True)
    for name in SOURCES:
        shutil.copy(ROOT / name, tree / name)
    unwanted = shutil.ignore_patterns("__pycache__", "*.so")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tree / name, copy_function=shutil.copy, ignore=unwanted)
    return tree


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_another_folder_gives_the_same_wheel(platform, tmp_path):
    """All but the commit that is named: the copy is no repository, so it names none."""
    tree = copied(tmp_path / "a-folder-with-a-longer-name")
    command(tree, "wheel", "--platform", platform)
    (elsewhere,) = tree.glob("dist/*.whl")
    here = built.wheel(platform)
    assert here.name == elsewhere.name
    with zipfile.ZipFile(here) as one, zipfile.ZipFile(elsewhere) as two:
        stamps = [
            [(entry.filename, entry.date_time, entry.external_attr) for entry in wheel.infolist()]
            for wheel in (one, two)
        ]
        assert stamps[0] == stamps[1]
        differing = {name for name in one.namelist() if one.read(name) != two.read(name)}
        assert {Path(name).name for name in differing} <= {"_build_info.py", "RECORD"}
        facts = [info.parse(wheel.read(info.PATH).decode()) for wheel in (one, two)]
        assert replace(facts[0], revision="") == replace(facts[1], revision="")


def test_another_folder_gives_the_same_source_distribution(tmp_path):
    made = []
    for name in ("a", "a-folder-with-a-longer-name"):
        tree = copied(tmp_path / name)
        done = subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--sdist", str(tree)],
            env={**environment(), "GPU_PLATFORM": "rocm"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        made += tree.glob("dist/*.tar.gz")
    assert made[0].name == made[1].name
    assert made[0].read_bytes() == made[1].read_bytes()
