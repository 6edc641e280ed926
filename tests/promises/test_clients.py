"""How programs end: by a failure, by Ctrl-C, by a hook of their own."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest


@pytest.mark.promise("S05")
@pytest.mark.parametrize("last", ["time.sleep(600)", "threading.Event().wait()"])
def test_a_failure_that_nobody_handles_ends_a_sleeping_program_with_one_report(client, last):
    program = client(f"mesh, pids = start(2)\nprint(*pids)\n{last}\n")
    pids = [int(word) for word in program.line().split()]
    began = time.monotonic()
    os.kill(pids[1], signal.SIGKILL)
    status, out, err = program.end()
    assert time.monotonic() - began < 10
    assert status == 1
    assert out == ""
    assert golden(err) == (
        "monarch: a failure that nobody handled ends the program with status 1\n"
        f"rank 1 of mesh 'trainers' was killed by signal SIGKILL [pid {pids[1]}, host HOST]\n"
        "  noticed TIME UTC\n"
    )
    assert program.left() == []
    assert set(pids) <= set(program.below)


def golden(text: str) -> str:
    text = text.replace(os.uname().nodename, "HOST")
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)


@pytest.mark.promise("S05")
@pytest.mark.report("79")
def test_a_program_that_waits_for_an_answer_ends_when_a_worker_is_killed(client):
    program = client(
        "mesh, pids = start(2)\n"
        "print(*pids)\n"
        "mesh.slice(gpus=0).hold_the_interpreter.call(600).get()\n"
    )
    pids = [int(word) for word in program.line().split()]
    os.kill(pids[1], signal.SIGKILL)
    status, _, err = program.end()
    assert status == 1
    assert err.count("signal SIGKILL") == 1
    assert "Traceback" not in err
    assert program.left() == []


@pytest.mark.promise("S05")
def test_the_report_of_an_exception_has_the_frames_of_the_program_and_none_of_ours(client):
    program = client("mesh, pids = start(1)\nmesh.fail.broadcast('beep')\ntime.sleep(600)\n")
    status, _, err = program.end()
    assert status == 1
    assert (
        "rank 0 of mesh 'trainers' failed while trainers.fail was running: ValueError: beep" in err
    )
    assert "tests/promises/actors.py" in err
    assert "runtime/monarch" not in err
    assert program.left() == []


@pytest.mark.promise("S05")
@pytest.mark.report("81")
def test_a_constructor_that_raises_ends_a_program_that_never_calls(client):
    program = client(
        "this_host().spawn_procs(per_host={'gpus': 2}).spawn('trainers', Mortal, 'beep')\n"
        "time.sleep(600)\n"
    )
    status, _, err = program.end()
    assert status == 1
    assert "of mesh 'trainers' failed in its constructor: ValueError: beep" in err
    assert program.left() == []


@pytest.mark.promise("S05")
def test_a_hook_of_the_program_may_record_and_let_it_go_on(client):
    program = client(
        "heard = []\n"
        "told = threading.Event()\n"
        "def hook(failure):\n"
        "    heard.append(failure)\n"
        "    told.set()\n"
        "monarch.actor.unhandled_fault_hook = hook\n"
        "mesh, pids = start(2)\n"
        "os.kill(pids[1], signal.SIGKILL)\n"
        "told.wait(60)\n"
        "print(heard[0].ranks, heard[0].signal)\n"
        "print(mesh.slice(gpus=0).pid.call_one().get(60) == pids[0])\n"
    )
    status, out, err = program.end()
    assert (status, out, err) == (0, "(1,) SIGKILL\nTrue\n", "")


ASYNC = """
import asyncio
async def main():
    await mesh.hold_the_interpreter.call(600)
asyncio.run(main())
"""


@pytest.mark.promise("F05")
@pytest.mark.parametrize(
    "last",
    [
        "mesh.hold_the_interpreter.call(600).get()",
        "time.sleep(600)",
        ASYNC,
    ],
    ids=["get", "sleep", "asyncio"],
)
def test_ctrl_c_once_ends_a_program_and_all_its_processes_in_a_second(client, last):
    program = client(f"mesh, pids = start(2)\nprint(*pids)\n{last}\n")
    program.line()
    began = time.monotonic()
    os.killpg(program.process.pid, signal.SIGINT)
    status, out, err = program.end()
    took = time.monotonic() - began
    assert status == -signal.SIGINT
    assert out == ""
    assert err.startswith("monarch: interrupted")
    assert "Traceback" not in err
    assert program.left() == []
    assert took < 5  # a second where the machine is not shared; measured in benchmarks


@pytest.mark.promise("F05")
def test_ctrl_c_twice_kills_a_program_that_holds_on(client):
    program = client(
        "mesh, pids = start(2)\n"
        "try:\n"
        "    print('ready')\n"
        "    time.sleep(600)\n"
        "finally:\n"
        "    print('holding on')\n"
        "    mesh.hold_the_interpreter.call(600).get()\n"
    )
    assert program.line() == "ready"
    program.process.send_signal(signal.SIGINT)
    assert program.line() == "holding on"
    program.process.send_signal(signal.SIGINT)
    status, _, err = program.end()
    assert status == 130
    assert "Traceback" not in err
    assert program.left() == []
