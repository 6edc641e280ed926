"""ci/nox: what it does on a bare machine, killed half-way, and run several times at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ("sh", "dirname", "mkdir", "mktemp", "rm", "mv", "env", "find")


@pytest.fixture
def checkout(tmp_path):
    """A folder with the launcher and a noxfile that says which Python runs it."""
    (tmp_path / "ci").mkdir()
    for name in ("nox", "nox-requirements.txt"):
        shutil.copy(ROOT / "ci" / name, tmp_path / "ci" / name)
    (tmp_path / "noxfile.py").write_text(
        "import nox\n\n\n@nox.session(venv_backend='none')\ndef hello(session):\n"
        "    session.log('hello %s', ' '.join(session.posargs))\n",
        encoding="utf-8",
    )
    return tmp_path


@pytest.fixture
def bare(tmp_path):
    """A folder for PATH with the tools that any system has, and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return folder


def script(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def launch(checkout: Path, *arguments: str, path: Path | None = None) -> tuple[int, str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHON"}
    if path is not None:
        environment["PATH"] = str(path)
    else:
        environment["PYTHON"] = sys.executable
    done = subprocess.run(
        [str(checkout / "ci/nox"), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_no_debian_and_no_python_is_status_5_with_the_line(checkout, bare):
    status, output = launch(checkout, path=bare)
    assert status == 5
    assert "no Python >= 3.11 with venv found" in output
    assert "apt-get install -y --no-install-recommends python3 python3-venv" in output


def test_a_user_who_is_not_root_is_told_the_line_to_type(checkout, bare):
    script(bare, "apt-get", "echo must not run; exit 1")
    script(bare, "id", "echo 1000")
    script(bare, "python3", "exit 1")
    status, output = launch(checkout, path=bare)
    assert status == 5
    assert "sudo apt-get install -y --no-install-recommends python3 python3-venv" in output
    assert "must not run" not in output


def test_root_gets_python_installed_and_is_told(checkout, bare):
    script(bare, "id", "echo 0")
    log = checkout / "apt.log"
    script(bare, "apt-get", f'echo "$*" >> {log}')
    status, output = launch(checkout, path=bare)
    assert status == 5
    assert "installing system packages: python3 python3-venv" in output
    assert "no Python >= 3.11 after all" in output
    update, install, _, older = log.read_text(encoding="utf-8").splitlines()
    assert update.startswith("-o DPkg::Lock::Timeout=600 update")
    assert install.startswith("install -y --no-install-recommends python3 python3-venv")
    assert older.startswith("install -y --no-install-recommends python3.11 python3.11-venv")


def test_a_failed_apt_is_status_5_with_the_line(checkout, bare):
    script(bare, "id", "echo 0")
    script(bare, "apt-get", "echo no network; exit 100")
    status, output = launch(checkout, path=bare)
    assert status == 5
    assert "no network" in output
    assert "apt-get failed (above); when it works, type: apt-get install" in output


def start(checkout: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(checkout / "ci/nox"), "-s", "hello", "--", "to", "you"],
        env={**os.environ, "PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_a_killed_run_leaves_nothing_whole_and_runs_at_once_share_one_environment(checkout):
    killed = start(checkout)
    assert killed.stdout is not None
    assert "setting up nox" in killed.stdout.readline()
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=60)
    runs = [start(checkout) for _ in range(2)]
    outputs = [run.communicate(timeout=300)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
    assert all("hello to you" in output for output in outputs)
    whole = [entry for entry in (checkout / ".cache").iterdir() if "-new-" not in entry.name]
    assert len(whole) == 1
    status, output = launch(checkout, "-s", "hello")
    assert status == 0
    assert "setting up" not in output


def test_an_index_that_cannot_be_reached_is_status_5(checkout):
    (checkout / "ci/nox-requirements.txt").write_text(
        "nox==0.0.0 --hash=sha256:" + "0" * 64 + "\n", encoding="utf-8"
    )
    status, output = launch(checkout, "--version")
    assert status == 5
    assert "could not install ci/nox-requirements.txt" in output
    assert list((checkout / ".cache").iterdir()) == []
