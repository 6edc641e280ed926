"""Bad networks between hosts: packets late, lost, out of order, doubled, damaged; bytes changed."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.monarch.hosts.rig import PORT

_PROGRAM = """
who = attached(sys.argv[1]).spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
who.pid.call().get(60)
count, answers = 600, []
for i in range(count):
    who.keep.broadcast(i)
    if i % 30 == 0:
        data = bytes([i % 251]) * (i * 37 % 30_000)
        answers.append((who.echo.call(data), data))
wrong = sum(value != data for call, data in answers for value in call.get(60).values())
kept = list(who.everything.call().get(60).values())
tell(wrong=wrong, in_order=kept == [list(range(count))] * 2, failures=len(failures))
"""
GOOD = {"wrong": 0, "in_order": True, "failures": 0}


@pytest.mark.promise("N03")
@pytest.mark.parametrize(
    "weather",
    [
        {"late": 0.15},
        {"late": 0.002, "spread": 0.06},
        {"late": 0.002, "lost": 0.05},
        {"late": 0.002, "spread": 0.01, "doubled": 0.1, "damaged": 0.05},
    ],
    ids=["late", "shuffled", "lossy", "damaged"],
)
def test_messages_come_once_and_in_order_through_a_bad_network_and_nobody_counts_as_dead(
    hosts, weather
):
    rig = hosts(1)
    host = rig.others[0]
    host.weather(7, **weather)
    _program, address = rig.serve(host)
    assert rig.run(_PROGRAM, address) == GOOD


_DAMAGED = """
who = attached(sys.argv[1]).spawn_procs().spawn("who", Who)
said = 0
line = "first"
while line:
    for _ in range(50):
        who.keep.broadcast(said)
        said += 1
    tell(in_order=who.everything.call_one().get(60) == list(range(said)), failures=len(failures))
    line = sys.stdin.readline()
"""


@pytest.mark.promise("N03")
def test_bytes_that_change_on_the_way_are_found_out_and_what_was_meant_arrives(hosts, tmp_path):
    rig = hosts(2)
    host, between = rig.others
    listen = f"tcp://{between.address}:{PORT}@tcp://{host.address}:{PORT}"
    _program, address = rig.serve(host, listen=listen)
    ends = (between.address, str(PORT), host.address, str(PORT), str(tmp_path))
    recorder = rig.start(between, ["-m", "ci.rigs.recorder", *ends], stdin=subprocess.PIPE)
    assert recorder.stdout.readline() == "listens\n"
    # A connection that broke has one heartbeat to be made again, on a machine that may be busy.
    variables = {"MONARCH_HEARTBEAT_INTERVAL": "3s"}
    program = rig.begin(_DAMAGED, address, variables=variables)
    for _ in range(10):
        assert json.loads(program.stdout.readline()) == {"in_order": True, "failures": 0}
        recorder.stdin.write("damage\n")
        recorder.stdin.flush()
        assert recorder.stdout.readline() == "damage\n"
        program.stdin.write("more\n")
        program.stdin.flush()
    assert json.loads(program.stdout.readline()) == {"in_order": True, "failures": 0}
    recorder.communicate(timeout=20)
    assert recorder.returncode == 0
    assert len(list(tmp_path.glob("*.up"))) > 5, "no connection broke: the test shows nothing"
