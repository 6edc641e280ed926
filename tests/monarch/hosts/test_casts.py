"""Calls to meshes across hosts, by way of the hosts' agents: order, loss, ways around it."""

from __future__ import annotations

import json
import os
import signal

import pytest

_HOSTS = 4

_SPAWN = """
from monarch._actor.process import process
count = int(sys.argv[1])
hosts = attached(*sys.argv[2:])
procs = hosts.spawn_procs(per_host={"gpus": count})
who = procs.spawn("who", Who)
pids = list(who.pid.call().get(60).values())
engine = process().engine
until = time.monotonic() + 30
while engine.wanted_edges():  # links between the agents
    assert time.monotonic() < until, "the agents make no links to each other"
    time.sleep(0.01)
def settled():
    until = time.monotonic() + 30
    while engine.casts()[0]:
        assert time.monotonic() < until, "casts are under way for ever"
        time.sleep(0.01)
"""


def _serve(rig, **variables):
    return [
        rig.serve(host, "--node-id", f"n{i}", variables=variables)[1]
        for i, host in enumerate(rig.others)
    ]


def test_a_call_to_many_goes_by_way_of_the_agents_and_every_rank_answers(hosts):
    rig = hosts(2)
    told = rig.run(
        _SPAWN
        + """
pending = who.nap.call(0.2)
under_way = engine.casts()[0]
pending.get(60)
same = set(who.echo.call("same").get(60).values())
own = list(who.pid.call().get(60).values())
streamed = sorted(future.get(60) for future in who.pid.stream())
large = {len(value) for value in who.echo.call("x" * 20_000).get(60).values()}
huge = {len(value) for value in who.echo.call("x" * 200_000).get(60).values()}
settled()
tell(under_way=under_way, same=list(same), own=own == pids, streamed=streamed == sorted(pids),
     large=list(large), huge=list(huge))
procs.stop().get(60)
""",
        "4",
        *_serve(rig),
    )
    assert told["under_way"] == 1
    assert told["same"] == ["same"]
    assert told["own"]
    assert told["streamed"]
    assert told["large"] == [20_000]
    assert told["huge"] == [200_000]


@pytest.mark.promise("R01")
def test_casts_and_calls_to_single_actors_keep_their_order(hosts):
    rig = hosts(2)
    told = rig.run(
        _SPAWN
        + """
ones = [who.slice(hosts=h, gpus=g) for h in (0, 1) for g in range(count)]
expected = [[] for _ in ones]
pending = []
for step in range(600):
    if step % 4 == 1:
        which = step % len(ones)
        pending.append(ones[which].keep.call_one(step))
        expected[which].append(step)
    elif step % 4 == 3:
        pending.append(who.keep.call(step))
        for one in expected:
            one.append(step)
    else:
        who.keep.broadcast(step)
        for one in expected:
            one.append(step)
for one in pending:
    one.get(60)
settled()
tell(same=list(who.everything.call().get(60).values()) == expected)
procs.stop().get(60)
""",
        "4",
        *_serve(rig),
    )
    assert told["same"]


@pytest.mark.promise("R08")
@pytest.mark.parametrize(
    ("count", "dead"),
    [(16, [3, 16, 31]), pytest.param(40, [3, 40, 79], marks=pytest.mark.slow)],
)
def test_a_call_to_many_gives_the_values_of_those_who_live_and_an_error_with_its_rank_of_the_others(
    hosts, count, dead
):
    rig = hosts(2)
    told = rig.run(
        _SPAWN
        + """
pending = who.nap.options(on_error="collect").call(0.5)
dead = json.loads(os.environ["DEAD"])
for rank in dead:
    os.kill(pids[rank], signal.SIGKILL)
found = pending.get(60)
again = who.pid.options(on_error="collect").call().get(60)
def split(values):
    good, bad = [], []
    for rank, value in enumerate(values.values()):
        (bad if isinstance(value, Exception) else good).append(rank)
    return good, bad
tell(first=split(found), second=split(again))
who.keep.broadcast(1)
alive = [who.slice(hosts=rank // count, gpus=rank % count) for rank in range(2 * count)
         if rank not in dead]
tell(kept=[one.everything.call_one().get(60) for one in alive] == [[1]] * len(alive))
settled()
procs.stop().get(60)
""",
        str(count),
        *_serve(rig),
        variables={"DEAD": json.dumps(dead)},
    )
    ranks = [rank for rank in range(2 * count) if rank not in dead]
    assert told["first"] == [ranks, dead]
    assert told["second"] == [ranks, dead]
    assert told["kept"]


_LOSE_ONE = (
    _SPAWN
    + """
alive = [rank for rank in range(4 * count) if rank // count != 0]
ones = [who.slice(hosts=rank // count, gpus=rank % count) for rank in alive]
for step in range(30):
    who.keep.broadcast(step)
pending = [who.keep.options(on_error="collect").call(30 + step) for step in range(10)]
nap = who.nap.options(on_error="collect").call(0.3)
print("ready", flush=True)
for step in range(200):  # while the agent between is lost
    who.keep.broadcast(40 + step)
    if step % 20 == 0:
        pending.append(who.echo.options(on_error="collect").call(step))
        time.sleep(0.02)
when, failure = next_failure()
answered = [[rank for rank, value in enumerate(one.get(60).values())
             if not isinstance(value, Exception)] for one in (*pending, nap)]
tell(survivors=all(set(alive) <= set(one) for one in answered))
kept = [one.everything.call_one().get(60) for one in ones]
tell(kept=kept == [list(range(240))] * len(ones))
again = who.pid.options(on_error="collect").call().get(60)
tell(again=[rank for rank, value in enumerate(again.values())
            if not isinstance(value, Exception)] == alive)
settled()
began = time.monotonic()
procs.stop().get(60)
tell(stopped=time.monotonic() - began)
"""
)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["kill", "stop"])
def test_an_agent_lost_in_the_middle_of_the_tree_holds_nobody_and_nothing_is_handled_twice(
    hosts, how
):
    rig = hosts(_HOSTS)
    variables = {"MONARCH_HEARTBEAT_INTERVAL": "100ms", "MONARCH_MAX_CAST_DIMENSION_SIZE": "2"}
    served = [
        rig.serve(host, "--node-id", f"n{i}", variables=variables)
        for i, host in enumerate(rig.others)
    ]
    program = rig.begin(_LOSE_ONE, "2", *(address for _, address in served), variables=variables)
    for line in program.stdout:
        if line.strip() == "ready":
            break
    # Two of the other hosts are reached by way of the first.
    os.kill(served[0][0].pid, how)
    out, _ = program.communicate(timeout=90)
    assert program.returncode == 0, out
    told = {}
    for line in out.splitlines():
        told |= json.loads(line)
    assert told["survivors"]
    assert told["kept"]
    assert told["again"]
    assert told["stopped"] < 10
