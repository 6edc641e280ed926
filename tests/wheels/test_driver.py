"""Wheels of a miniature tree: killed at each step of a build, refused, and built twice."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ci.rigs import disks

_path = Path(__file__).resolve().parents[1] / "port/build/miniature.py"
_spec = importlib.util.spec_from_file_location("miniature", _path)
miniature = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(miniature)

pytestmark = pytest.mark.slow

DIE = "__import__('os').killpg(0, 9)"
STEPS = {
    "while compiling": ("runtime/core/CMakeLists.txt", "add_library", "DIE_IN_CMAKE\nadd_library"),
    "with a wheel made by the backend": (
        "port/build/backend.py",
        "        (place / name).replace(",
        f"        {DIE}\n        (place / name).replace(",
    ),
    "with a wheel repaired": (
        "port/build/repair.py",
        "        made[0].replace(",
        f"        {DIE}\n        made[0].replace(",
    ),
    "while verifying": ("port/verify/command.py", "import click", f"import click\n{DIE}"),
    "before the wheel is moved into place": (
        "port/build/wheel.py",
        "        repaired.replace(",
        f"        {DIE}\n        repaired.replace(",
    ),
}
# Ninja puts its jobs into groups of their own, so the session's first group is meant.
COMPILER = """\
add_custom_target(killer ALL
  COMMAND "${Python_EXECUTABLE}" -c "__import__('os').killpg(__import__('os').getsid(0), 9)"
  VERBATIM)
add_dependencies(monarch_core killer)
"""


def run(tree, output):
    command = [sys.executable, "-m", "port.build", "wheel", "--platform", "cpu"]
    environ = miniature.environment("cpu", PYTHONPATH=str(tree))
    return subprocess.run(
        [*command, "--output", str(output)],
        cwd=tree,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )


@pytest.mark.promise("B09")
def test_a_build_killed_at_any_step_leaves_nothing_a_later_run_takes(tmp_path):
    tree = miniature.tree(tmp_path / "tree")
    output = tmp_path / "dist"
    for step, (name, old, new) in STEPS.items():
        path = tree / name
        whole = path.read_text(encoding="utf-8")
        if new.startswith("DIE_IN_CMAKE"):
            changed = whole + COMPILER
        else:
            assert whole.count(old) == 1, f"{name} no longer has the step {step!r}"
            changed = whole.replace(old, new)
        path.write_text(changed, encoding="utf-8")
        done = run(tree, output)
        assert done.returncode == -signal.SIGKILL, f"{step}: {done.stderr[-2000:]}"
        assert not list(output.glob("*.whl")), step
        path.write_text(whole, encoding="utf-8")

    done = run(tree, output)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = [path for path in output.iterdir() if path.name != ".lock"]
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None


def test_a_wheel_that_the_verifier_refuses_does_not_reach_the_folder(tmp_path):
    tree = miniature.tree(tmp_path / "tree")
    path = tree / "port/policy/cpu.toml"
    text = path.read_text(encoding="utf-8")
    assert "[size]" in text
    head, _, tail = text.partition("[size]")
    rest = "\n".join(line for line in tail.splitlines() if not line.startswith("wheel ="))
    path.write_text(f"{head}[size]\nwheel = 10{rest}\n", encoding="utf-8")
    done = run(tree, tmp_path / "dist")
    assert done.returncode == 1
    assert "V13" in done.stdout
    assert [entry.name for entry in (tmp_path / "dist").iterdir()] == [".lock"]


@pytest.mark.promise("F03")
@pytest.mark.skipif(bool(disks.missing()), reason=disks.missing())
@pytest.mark.parametrize("size", [4 << 10, 64 << 10])
def test_a_full_disk_ends_the_build_and_leaves_no_wheel(tmp_path, size):
    tree = miniature.tree(tmp_path / "tree")
    output = tmp_path / "dist"
    output.mkdir()
    build = [sys.executable, "-m", "port.build", "wheel", "--platform", "cpu"]
    listed = '"$@"; status=$?; ls -A "$0"; exit $status'
    shell = ["sh", "-c", listed, str(output), *build, "--output", str(output)]
    done = subprocess.run(
        disks.command(output, size, shell),
        cwd=tree,
        env=miniature.environment("cpu", PYTHONPATH=str(tree)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode not in {0, -signal.SIGKILL}, done.stdout
    assert "No space left on device" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr.splitlines()[-1]
    assert done.stdout.splitlines()[-1] == ".lock"


@pytest.mark.promise("B10")
def test_two_folders_give_the_same_file(tmp_path):
    wheels = []
    for name in ("a", "another-folder-with-a-longer-name"):
        tree = miniature.tree(tmp_path / name / "tree")
        done = run(tree, tmp_path / name / "dist")
        assert done.returncode == 0, done.stdout + done.stderr
        wheels += (tmp_path / name / "dist").glob("*.whl")
    assert wheels[0].name == wheels[1].name
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
