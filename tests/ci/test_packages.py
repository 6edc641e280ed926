"""System packages: which are missing, how they are brought, and what is said where they cannot."""

from __future__ import annotations

import pytest

from ci import packages


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without any of the commands; its apt-get installs what it is told and logs it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "apt.log"
    apt = folder / "apt-get"
    apt.write_text(
        "#!/bin/sh\n"
        f'echo "$*" >> {log}\n'
        'for word; do case $word in g++|git) printf "#!/bin/sh\\n" > '
        f"{folder}/$word; /bin/chmod +x {folder}/$word;; esac; done\n",
        encoding="utf-8",
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setitem(packages.NEEDS, "some", (packages.GXX, packages.GIT))
    return log


def test_root_on_debian_gets_the_packages_and_is_told(machine, monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    packages.ensure("some")
    assert "session some needs g++, git; running: apt-get install" in capsys.readouterr().err
    assert "install -y --no-install-recommends g++ git" in machine.read_text(encoding="utf-8")


def test_nothing_is_run_when_all_is_there(machine, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    packages.ensure("some")
    machine.unlink()
    packages.ensure("some")
    assert not machine.exists()


def test_a_user_is_told_the_one_line_and_status_is_5(machine, monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SystemExit) as caught:
        packages.ensure("some")
    assert caught.value.code == 5
    line = "sudo apt-get install -y --no-install-recommends g++ git"
    assert line in capsys.readouterr().err
    assert not machine.exists()


def test_no_debian_is_status_5_and_names_what_is_missing(machine, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as caught:
        packages.ensure("some")
    assert caught.value.code == 5
    assert "needs g++, git; this is no Debian family" in capsys.readouterr().err


def test_a_package_that_does_not_bring_its_command_is_not_taken_for_done(
    machine, monkeypatch, capsys
):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    odd = packages.SystemPackage("odd", command="odd-command")
    monkeypatch.setitem(packages.NEEDS, "some", (odd,))
    with pytest.raises(SystemExit) as caught:
        packages.ensure("some")
    assert caught.value.code == 5
    assert "odd-command is not there" in capsys.readouterr().err


def test_every_session_of_the_noxfile_that_asks_has_its_entry():
    text = (packages.Path(__file__).parents[2] / "noxfile.py").read_text(encoding="utf-8")
    asked = {line.split('"')[1] for line in text.splitlines() if "packages.ensure(" in line}
    assert asked
    assert asked <= set(packages.NEEDS)
