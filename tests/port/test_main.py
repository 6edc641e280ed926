"""The console script `port`: the same commands as `python -m port.<part>`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from port import cli

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("part", ["hipify", "platform", "verify"])
def test_each_part_is_a_command(part):
    both = [run("port", part, "--help"), run(f"port.{part}", "--help")]
    assert [done.returncode for done in both] == [0, 0]
    texts = [done.stdout.split("\n", 1)[1] for done in both]
    assert texts[0] == texts[1], "all but the line with the program's name"
    assert part in run("port", "--help").stdout


def test_an_unknown_command_is_a_usage_error_of_one_line():
    done = run("port", "porting")
    assert done.returncode == 2
    assert "No such command 'porting'" in done.stderr


def test_the_status_of_a_part_is_the_programs():
    done = run("port", "verify", "/nonexistent.whl")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("package", ["port", "monarch"])
def test_a_bug_is_reported_as_one_of_the_package_whose_command_it_is(package, capsys):
    def broken() -> None:
        raise RuntimeError("unexpected")

    with pytest.raises(SystemExit) as ended:
        cli.run(click.Command("x", callback=broken), [], package=package)
    assert ended.value.code == 70
    assert f"this is a bug in {package};" in capsys.readouterr().err


def test_one_thing_is_not_counted_as_several(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.cpp").write_text("int main() { return cuNothing(); }\n")
    done = run("port.hipify", str(tmp_path / "a"), "-o", str(tmp_path / "b"))
    assert done.stdout.splitlines()[-1] == "1 file for HIP 6.4: 1 unchanged; 1 error, 0 warnings"


def test_the_scripts_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"monarch": "monarch.__main__:main", "port": "port.__main__:main"}
