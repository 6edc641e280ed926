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
    told = rig.run(_PROGRAM, address, "12000", variables=variables)
    assert told == {"count": 12_000, "in_order": True, "failures": 0}
    cutter.kill()
    cuts = cutter.communicate()[0].count("cut")
    assert cuts > 3, "it was not cut: the test shows nothing"


_MANY = """
from tests.promises.test_delivery import Receiver, Sender, send_all
each = int(sys.argv[1])
near, far = (attached(address) for address in sys.argv[2:])
receivers = far.spawn_procs(per_host={"gpus": 4}).spawn("receivers", Receiver)
one = receivers.slice(gpus=0)
senders = near.spawn_procs(per_host={"gpus": 4}).spawn("senders", Sender)
totals = dict(senders.send.call(one, each).get(300).values())
counts, sums, wrong = one.seen.call_one().get(300)
tell(from_four=[wrong, counts == dict.fromkeys(range(4), each), sums == totals])
for rank in range(1, 4):
    total = send_all(receivers.slice(gpus=rank), 9, each)
    counts, sums, wrong = receivers.slice(gpus=rank).seen.call_one().get(300)
    tell(**{f"to_{rank}": [wrong, counts == {9: each}, sums == {9: total}]})
tell(failures=len(failures))
"""


@pytest.mark.slow
@pytest.mark.promise("R01")
@pytest.mark.parametrize(("encrypted", "each"), [(True, 150_000), (False, 10_000)])
def test_a_million_messages_between_hosts_come_once_and_in_order(hosts, encrypted, each):
    """Of four senders to one receiver, and of one to three: seven times `each`."""
    rig = hosts(2)
    variables = None if encrypted else {"MONARCH_INSECURE_PLAINTEXT": "1"}
    addresses = [rig.serve(host, variables=variables)[1] for host in rig.others]
    told = rig.run(_MANY, str(each), *addresses, variables=variables, seconds=600)
    good = [[], True, True]
    wanted = {"from_four": good, "to_1": good, "to_2": good, "to_3": good, "failures": 0}
    assert told == wanted
