"""Connections that break under a link: nothing is lost, nothing comes twice."""

from __future__ import annotations

import pytest

_PROGRAM = """
count = int(sys.argv[2])
hosts = attached(sys.argv[1])
who = hosts.spawn_procs().spawn("who", Who)
who.pid.call_one().get(60)
answers = []
for i in range(count):
    who.keep.broadcast(i)
    if i % 50 == 0:
        data = bytes([i % 251]) * (i * 37 % 200_000)
        answers.append((who.echo.call_one(data), data))
    if i % 200 == 0:
        time.sleep(0.02)
for call, data in answers:
    assert call.get(60) == data
kept = who.everything.call_one().get(60)
tell(count=len(kept), in_order=kept == list(range(count)), failures=len(failures))
hosts.shutdown().get(60)
"""


@pytest.mark.promise("R02")
@pytest.mark.parametrize("encrypted", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_messages_survive_a_link_that_is_cut_all_the_time(hosts, encrypted, seed):
    rig = hosts(2)
    variables = None if encrypted else {"MONARCH_INSECURE_PLAINTEXT": "1"}
    host, between = rig.others
    listen = f"tcp://{between.address}:26600@tcp://{host.address}:26600"
    _program, address = rig.serve(host, listen=listen, variables=variables)
    assert address == f"tcp://{between.address}:26600"
    cutter = rig.start(
        between,
        [
            *("-m", "ci.rigs.cutter", between.address, "26600", host.address, "26600"),
            *(str(seed), "0.05", "0.5"),
        ],
    )
    assert cutter.stdout.readline() == "listens\n"
    told = rig.run(_PROGRAM, address, "4000", variables=variables)
    assert told == {"count": 4000, "in_order": True, "failures": 0}
    cutter.kill()
    cuts = cutter.communicate()[0].count("cut")
    assert cuts > 3, "it was not cut: the test shows nothing"
