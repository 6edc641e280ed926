"""Hosts that are busy, slow or short of something: nobody counts as dead, nothing is left."""

from __future__ import annotations

import json
import os

import pytest

from tests.watching import resident, until

_BEATS = {"MONARCH_HEARTBEAT_INTERVAL": "100ms"}  # lost after four of them

_HOLD = """
import ctypes
from monarch.supervision import status
from tests.promises.actors import Mortal
procs = attached(*sys.argv[1:]).spawn_procs()
mortal = procs.spawn("mortal", Mortal)
pids = list(mortal.pid.call().get(60).values())
held = mortal.slice(hosts=1).hold_the_interpreter.call_one(2.0)
end = time.monotonic() + 60
while status(procs)[1].seconds < 1.5 and time.monotonic() < end:
    time.sleep(0.05)
states = [one.state for one in status(procs)]
answer = held.get(60)
ctypes.PyDLL(None).usleep(2_000_000)  # and now the program itself, with the interpreter's lock
tell(states=states, answer=answer, same=list(mortal.pid.call().get(60).values()) == pids,
     failures=len(failures))
"""


@pytest.mark.promise("S07")
def test_processes_and_programs_that_hold_their_interpreter_are_busy_and_not_lost(hosts):
    rig = hosts(2)
    addresses = [rig.serve(host)[1] for host in rig.others]
    assert rig.run(_HOLD, *addresses, variables=_BEATS) == {
        "states": ["idle", "busy"],
        "answer": "done",
        "same": True,
        "failures": 0,
    }


_STUBBORN = """
import ctypes, subprocess
from monarch.actor import Actor, endpoint
class Stubborn(Actor):
    @endpoint
    def begin(self):
        ctypes.CDLL(None).signal(signal.SIGTERM, ctypes.c_void_p(1))
        ignores = "trap '' TERM; echo here; while :; do sleep 600; done"
        left = subprocess.Popen(["setsid", "sh", "-c", f"({ignores}) & {ignores}"],
                                stdout=subprocess.PIPE)
        return [os.getpid(), left.stdout.readline(), left.stdout.readline()][0]
    @endpoint
    def hang(self):
        while True:
            time.sleep(600)
procs = attached(*sys.argv[1:]).spawn_procs(per_host={"gpus": 2})
stubborn = procs.spawn("stubborn", Stubborn)
stubborn.begin.call().get(60)
stubborn.hang.broadcast()
print("ready", flush=True)
sys.stdin.readline()
procs.stop().get(60)
tell(failures=len(failures))
sys.stdin.readline()
"""


@pytest.mark.promise("S04")
@pytest.mark.report("77", "84")
def test_what_does_not_want_to_end_on_other_hosts_is_killed_with_all_it_started(hosts):
    rig = hosts(2)
    served, addresses = zip(*(rig.serve(host) for host in rig.others), strict=True)
    program = rig.begin(_STUBBORN, *addresses)
    assert program.stdout.readline() == "ready\n"
    for host in rig.others:  # the agent, its zygote, two processes, and four of what they started
        assert len(host.pids()) >= 8
    program.stdin.write("\n")
    program.stdin.flush()
    assert json.loads(program.stdout.readline()) == {"failures": 0}
    for host, agent in zip(rig.others, served, strict=True):
        until(lambda host=host, agent=agent: len(host.pids()) <= 2 and agent.pid in host.pids(), 20)
    program.communicate("\n", timeout=60)
    assert program.returncode == 0


# One of ten processes reads nothing; the program casts to all of them until it is held up.
_SLOW = """
from tests.promises.test_delivery import Quick, Slow
gate = sys.argv[1]
procs = attached(*sys.argv[2:]).spawn_procs(per_host={"gpus": 5})
slow = procs.spawn("slow", Slow, gate)
quick = procs.spawn("quick", Quick)
pids = list(slow.pid.call().get(60).values())
waits = slow.slice(hosts=0, gpus=0).wait.call_one()
data, count, sent = bytes(10_000), 4_000, [0]
def flood():
    while sent[0] < count:
        slow.take.broadcast(data)
        sent[0] += 1
sender = threading.Thread(target=flood)
sender.start()
before = -1
while sent[0] != before:  # others are answered all the time
    before = sent[0]
    for number in range(200):
        assert set(quick.add.call(number).get(60).values()) == {number + 1}
tell(held=sent[0], pids=pids, own=os.getpid())
print("held", flush=True)
sys.stdin.readline()
with open(gate, "wb"):
    pass
waits.get(60)
sender.join(60)
slow.pid.call().get(60)
tell(sent=sent[0], failures=len(failures))
"""


@pytest.mark.promise("R05")
def test_a_slow_process_of_another_host_holds_up_its_senders_and_fills_no_agent(hosts, tmp_path):
    rig = hosts(2)
    served, addresses = zip(*(rig.serve(host) for host in rig.others), strict=True)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    before = [resident(agent.pid) for agent in served]
    program = rig.begin(_SLOW, str(gate), *addresses)
    told = json.loads(program.stdout.readline())
    assert program.stdout.readline() == "held\n"
    window = 16 << 20
    assert 0.9 * window < told["held"] * 10_000 < 1.2 * window
    for agent, size in zip(served, before, strict=True):
        assert resident(agent.pid) - size < 3 * window
    assert resident(told["own"]) < 8 * window
    assert all(resident(pid) < 8 * window for pid in told["pids"])
    program.stdin.write("\n")
    program.stdin.flush()
    assert json.loads(program.stdout.readline()) == {"sent": 4_000, "failures": 0}
    assert program.wait(60) == 0


_MANY = """
one = attached(sys.argv[1])
who = one.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
pids = list(who.pid.call().get(60).values())
try:
    one.spawn_procs(per_host={"gpus": 64}).spawn("many", Who).pid.call().get(60)
except ActorCrashError as error:
    tell(said=str(error))
tell(same=list(who.pid.call().get(60).values()) == pids)
again = None
while again is None:  # until the connections to those that did not start are gone
    try:
        again = len(one.spawn_procs(per_host={"gpus": 2}).spawn("again", Who).pid.call().get(60))
    except ActorCrashError:
        time.sleep(0.05)
tell(again=again)
"""


@pytest.mark.promise("F01")
def test_a_host_out_of_descriptors_says_so_and_those_it_has_go_on(hosts):
    rig = hosts(1)
    _served, address = rig.serve(rig.others[0], before=("prlimit", "--nofile=64:64"))
    told = rig.run(_MANY, address)
    assert "cannot start 64 processes: descriptors ran out" in told["said"]
    assert "RLIMIT_NOFILE is 64" in told["said"]
    assert told["again"] == 2
    assert told["same"]
