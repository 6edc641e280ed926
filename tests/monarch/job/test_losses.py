"""Losses in a `ProcessMesh` whose program has no hook for failures: they end no program."""

from __future__ import annotations

import re

import pytest

from tests.promises.programs import Client

# Both processes of the second node are killed while nobody waits for them.
_KILL = """
from monarch.actor import ActorCrashError
from monarch.mesh import ProcessMesh
from monarch.supervision import Restart, status
mesh = ProcessMesh.local(hosts=2, gpus_per_host=2, {options})
trainers = mesh.spawn("trainers", Mortal)
pids = list(trainers.pid.call().get(60).values())
for pid in pids[2:]:
    os.kill(pid, signal.SIGKILL)
"""
_REPLACE = """
while [one.state for one in status(mesh)] != ["idle", "idle", "gone", "gone"]:
    time.sleep(0.01)
try:
    trainers.pid.call().get(60)
except ActorCrashError as failure:
    mesh.replace_node(failure.node_id)
after = list(trainers.pid.call().get(60).values())
print([old == new for old, new in zip(pids, after)])
mesh.stop().get(60)
"""
_LOST = (
    r"monarch: rank [23] of mesh 'trainers' was killed by signal SIGKILL \[.*node hosts_1\]; "
    r"the program goes on; calls to it raise until replace_node\('hosts_1'\)\n"
)


@pytest.fixture
def program():
    """`program(body, options)`: its end, once processes of it are known; nothing of it is left."""

    def run(body, options=""):
        client = Client(_KILL.format(options=options) + "print('killed')\n" + body)
        assert client.line() == "killed"
        found = client.end()
        assert client.left(20) == []
        return found

    return run


@pytest.mark.promise("S05")
def test_a_node_that_is_lost_while_nobody_looks_is_replaced_when_a_call_raises(program):
    status, out, err = program(_REPLACE)
    assert (status, out) == (0, "[True, True, False, False]\n"), err
    assert re.fullmatch(_LOST, err), err


@pytest.mark.promise("S05")
def test_a_loss_that_nobody_deals_with_ends_the_program_that_runs_into_it(program):
    status, _, err = program("trainers.hold_the_interpreter.call(600).get()")
    assert status == 1
    assert "\nmonarch.errors.ActorCrashError: Mortal.hold_the_interpreter" in err, err


@pytest.mark.promise("S05")
@pytest.mark.parametrize(
    ("options", "body", "why"),
    [
        ("restart=Restart(max=0)", "", "0 restarts within 60 s, and 0 are allowed"),
        ("", "trainers.slice(hosts=0, gpus=0).fail.broadcast('beep')", "ValueError: beep"),
    ],
    ids=["policy", "actor"],
)
def test_what_replacing_a_node_does_not_make_good_ends_the_program(program, options, body, why):
    status, _, err = program(f"{body}\ntime.sleep(600)", options)
    assert status == 1
    assert "a failure that nobody handled ends the program with status 1" in err
    assert why in err
