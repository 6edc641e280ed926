from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from monarch._failure import MeshFailure
from monarch._supervision import hook

FAILURE = MeshFailure("exit", "w", (1,), exit_code=7, pid=5)


@pytest.fixture(autouse=True)
def _as_in_a_program(monkeypatch):
    monkeypatch.setattr(hook, "_default", [hook.unhandled_fault_hook])


@pytest.fixture
def public(monkeypatch):
    """A stand-in for the public module, whose attribute the user sets."""
    module = types.ModuleType("monarch.actor")
    monkeypatch.setitem(sys.modules, "monarch.actor", module)
    return module


def run(failure=FAILURE):
    ends = []
    hook.report_unhandled(failure, lambda status, report: ends.append((status, report)))
    return ends


@pytest.mark.promise("S05")
def test_without_a_hook_of_the_users_the_program_ends_with_status_1_and_a_report():
    ((status, report),) = run()
    assert status == 1
    assert report == (
        "monarch: a failure that nobody handled ends the program with status 1\n"
        "rank 1 of mesh 'w' ended with exit code 7 [pid 5]"
    )


def test_a_hook_of_the_users_is_called_and_the_program_goes_on(public):
    seen = []
    public.unhandled_fault_hook = seen.append
    assert not hook.is_default()
    assert run() == []
    assert seen == [FAILURE]


def test_a_hook_that_is_no_function_any_more_counts_as_none(public):
    public.unhandled_fault_hook = None
    assert hook.is_default()
    assert [status for status, _ in run()] == [1]


@pytest.mark.parametrize(("code", "status"), [(None, 0), (3, 3), (256 + 3, 3), ("text", 1)])
def test_a_hook_may_end_the_program_with_a_status_of_its_own(public, code, status):
    def ends(_failure):
        raise SystemExit(code)

    public.unhandled_fault_hook = ends
    ((got, report),) = run()
    assert got == status
    assert f"status {status}\n" in report


def test_a_hook_that_raises_ends_the_program_and_both_are_told(public):
    def broken(_failure):
        raise KeyError("colour")

    public.unhandled_fault_hook = broken
    ((status, report),) = run()
    assert status == 1
    assert "exit code 7" in report
    assert report.endswith("KeyError: 'colour'")


@pytest.mark.promise("S05")
def test_a_loss_that_can_be_made_good_ends_no_program_and_is_told_once_for_a_node(public, capfd):
    lost = MeshFailure("signal", "w", (1,), signal="SIGKILL", node_id="n1", replaceable=True)
    for failure in (lost, lost.replace(ranks=(2,)), lost.replace(incarnation=1)):
        assert run(failure) == []
    told = (
        "monarch: rank 1 of mesh 'w' was killed by signal SIGKILL [node n1]; the program goes on; "
    )
    assert capfd.readouterr().err == 2 * f"{told}calls to it raise until replace_node('n1')\n"
    seen = []
    public.unhandled_fault_hook = seen.append
    assert run(lost) == []
    assert seen == [lost]
    assert capfd.readouterr().err == ""


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "runtime")}
END = """
import atexit, sys, threading, time
from monarch._supervision.hook import end_program

sys.stdout.write("before ")
atexit.register(print, "never")

def stop():
    sys.stdout.write("stopped")
    raise OSError("passed over")

thread = threading.Timer(0.05, end_program, (3, "the report\\n", [stop]))
thread.start()
time.sleep(60)
"""


@pytest.mark.promise("S05")
def test_the_end_comes_at_once_while_the_main_thread_sleeps_and_the_report_comes_last():
    done = subprocess.run(
        [sys.executable, "-c", END],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 3
    assert done.stdout == "before stopped"
    assert done.stderr == "the report\n"


def test_the_end_comes_also_when_nobody_reads_the_report():
    code = END.replace('sys.stdout.write("before ")', "")
    reader = subprocess.Popen(
        [sys.executable, "-c", code],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    reader.stdout.close()
    reader.stderr.close()
    assert reader.wait(timeout=30) == 3
