"""Commands on the hosts of a job."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from monarch.actor import ActorCrashError, ActorError, this_host
from monarch.job import ProcessJob, exec_command

T = 60


@pytest.fixture(scope="module")
def hosts():
    job = ProcessJob({"hosts": 2})
    yield job.state(cached_path=None).hosts
    job.kill()


def test_lines_are_printed_and_the_highest_status_returned(hosts, capsys):
    code = "r=$MONARCH_RANK_HOSTS; echo out $r of $MONARCH_SIZE_HOSTS; echo err >&2; exit $r"
    assert exec_command(hosts, ["sh", "-c", code]).get(T) == 1
    found = capsys.readouterr()
    assert sorted(found.out.splitlines()) == ["out 0 of 2", "out 1 of 2"]
    assert found.err == "err\nerr\n"


def test_one_rank_or_one_point_is_run(hosts, capsys):
    show = ["sh", "-c", "echo $MONARCH_RANK_HOSTS $MONARCH_RANK_GPUS"]
    assert (
        exec_command(hosts, show, per_host={"gpus": 2}, point={"hosts": 1, "gpus": 0}).get(T) == 0
    )
    assert exec_command(hosts, ["echo", "one"], per_host={"gpus": 2}, rank=3).get(T) == 0
    assert exec_command(hosts, ["echo", "point"], point={"hosts": 0}).get(T) == 0
    assert sorted(capsys.readouterr().out.split()) == ["one", "point"]


def test_variables_and_folder_are_as_given(hosts, tmp_path, capsys):
    code = ["sh", "-c", "echo $FLAVOUR; pwd"]
    where = {"workdir": str(tmp_path), "point": {"hosts": 0}}
    exec_command(hosts, code, env={"FLAVOUR": "mint"}, **where).get(T)
    assert capsys.readouterr().out.split() == ["mint", str(tmp_path)]


def test_python_runs_scripts_and_modules(tmp_path, capsys):
    script = tmp_path / "show.py"
    script.write_text("import sys; print(sys.argv[1], sys.executable)", encoding="utf-8")
    assert exec_command(this_host(), [str(script), "x"]).get(T) == 0
    assert capsys.readouterr().out.split() == ["x", sys.executable]
    assert exec_command(this_host(), ["-m", "this"]).get(T) == 0
    assert "Namespaces" in capsys.readouterr().out


def test_output_goes_to_files_where_asked_for(hosts, tmp_path, capsys):
    where = f"{tmp_path}/logs/$SUBDIR"
    assert exec_command(hosts, ["sh", "-c", "echo hi"], output_dir=where).get(T) == 0
    assert capsys.readouterr().out == ""
    for host in range(2):
        assert (Path(tmp_path) / f"logs/hosts_{host}/stdout.txt").read_text() == "hi\n"


def test_a_command_runs_while_it_is_not_waited_for(tmp_path):
    gate = tmp_path / "gate"
    wait = f"while ! test -e {gate}; do sleep 0.05; done; exit 3"
    ended = exec_command(this_host(), ["sh", "-c", wait])
    with pytest.raises(TimeoutError, match="command 'sh'"):
        ended.get(timeout=0.1)
    gate.touch()
    assert ended.get(T) == 3


def test_what_stops_a_command_from_starting_is_raised_to_who_waits():
    with pytest.raises(ActorError, match="no-such-program"):
        exec_command(this_host(), ["no-such-program"]).get(T)


def test_a_signal_is_told_as_shells_do():
    assert exec_command(this_host(), ["sh", "-c", "kill -9 $$"]).get(T) == 137


def test_the_death_of_the_process_that_runs_a_command_is_raised_to_who_waits():
    with pytest.raises(ActorCrashError):
        exec_command(this_host(), ["sh", "-c", "kill -9 $PPID; sleep 30"]).get(T)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ValueError, match="cmd is empty"):
        exec_command(this_host(), [])
    with pytest.raises(ValueError, match="not both"):
        exec_command(this_host(), ["true"], rank=0, point={})
