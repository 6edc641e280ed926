"""Failures across hosts: killed processes, stopped ones, cut links, hosts that come back."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

_SPAWN = """
hosts = attached(*sys.argv[1:])
procs = hosts.spawn_procs(per_host={"gpus": 2})
who = procs.spawn("who", Who)
pids = list(who.pid.call().get(60).values())
tell(pids=pids)
one, two = (who.slice(hosts=h, gpus=0) for h in (0, 1))
"""


@pytest.mark.promise("S01")
@pytest.mark.promise("R03")
def test_a_killed_process_of_another_host_is_a_failure_with_its_host(hosts):
    rig = hosts(2)
    addresses = [rig.serve(host, "--node-id", f"n{i}")[1] for i, host in enumerate(rig.others)]
    told = rig.run(
        _SPAWN
        + """
pending = two.hang.call_one()
one.pid.call_one().get(60)
began = time.monotonic()
os.kill(pids[2], signal.SIGKILL)
when, failure = next_failure()
try:
    pending.get(60)
except ActorCrashError as error:
    tell(node_id=error.node_id, host=error.host, delivered=error.delivered)
tell(seconds=when - began, ranks=failure.ranks, kind=failure.kind, signal=failure.signal,
     node=failure.node_id, pid=failure.pid, again=one.pid.call_one().get(60), left=len(failures))
procs.stop().get(60)
""",
        *addresses,
    )
    assert told["ranks"] == [2]
    assert (told["kind"], told["signal"]) == ("signal", "SIGKILL")
    assert told["node"] == told["node_id"] == "n1"
    assert told["host"]
    assert told["pid"] == told["pids"][2]
    assert told["again"] == told["pids"][0]
    assert told["left"] == 0
    assert told["seconds"] < 5


_LOST_HOST = (
    _SPAWN
    + """
pending = two.hang.call_one()
one.pid.call_one().get(60)
print("ready", flush=True)
when, failure = next_failure()
tell(noticed=when, ranks=failure.ranks, kind=failure.kind, node=failure.node_id,
     message=failure.message)
errors = []
for call in (pending, who.pid.call(), two.pid.call_one()):
    try:
        call.get(30)
    except (ActorCrashError, SupervisionError) as error:
        errors.append(error.node_id if isinstance(error, ActorCrashError) else str(error))
tell(errors=errors, again=one.pid.call_one().get(30))
began = time.monotonic()
who.pid.broadcast()
procs.stop().get(30)
tell(stopped=time.monotonic() - began)
print("done", flush=True)
if os.environ.get("STAY"):
    time.sleep(3600)
"""
)


def _until_ready(program):
    lines = []
    for line in program.stdout:
        if line.strip() in {"ready", "done"}:
            break
        lines.append(line)
    else:
        raise AssertionError("".join(lines))
    import json  # noqa: PLC0415 - one place

    told = {}
    for line in lines:
        told |= json.loads(line)
    return told


@pytest.mark.promise("N01")
@pytest.mark.promise("N05")
@pytest.mark.parametrize("how", ["cut", "cut_from", "cut_to", "unplug", "stop"])
@pytest.mark.parametrize(("beat", "limit"), [("500ms", 2.5), ("100ms", 0.6)])
def test_a_host_that_is_cut_off_or_stopped_is_noticed_by_its_silence(hosts, how, beat, limit):
    rig = hosts(2)
    variables = {"MONARCH_HEARTBEAT_INTERVAL": beat}
    addresses = [
        rig.serve(host, "--node-id", f"n{i}", variables=variables)[1]
        for i, host in enumerate(rig.others)
    ]
    program = rig.begin(_LOST_HOST, *addresses, variables=variables)
    _until_ready(program)
    began = time.monotonic()
    gone = rig.others[1]
    if how == "stop":
        gone.signal(signal.SIGSTOP)
    elif how == "cut_from":
        rig.here.cut_from(gone)
    elif how == "cut_to":
        gone.cut_from(rig.here)
    else:
        getattr(gone, how)()
    told = _until_ready(program)
    assert program.wait(60) == 0
    seconds = told["noticed"] - began
    assert seconds < limit + 2.0, "the machine may be busy, but not that busy"
    assert told["ranks"] in ([2], [3], [2, 3])
    assert told["node"] == "n1"
    assert told["kind"] in {"lost", "hung", "start"}
    # Where only the way there is cut, either side may be the first to notice.
    words = ["answered", "heard this program"] if how == "cut_to" else ["answered"]
    assert any(f"its host has not {word} for " in told["message"] for word in words)
    assert len(told["errors"]) == 3
    assert told["stopped"] < 5


def _gone(pids, seconds):
    end = time.monotonic() + seconds
    left = set(pids)
    while left and time.monotonic() < end:
        for pid in list(left):
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                if state in "ZX":
                    left.discard(pid)
            except OSError:
                left.discard(pid)
        time.sleep(0.02)
    return not left


@pytest.mark.promise("N01")
@pytest.mark.promise("N02")
@pytest.mark.parametrize("how", ["cut", "stop"])
def test_a_host_that_comes_back_ends_what_it_had_and_acts_on_nothing(hosts, how):
    rig = hosts(2)
    # The program's setting is the one that counts, on hosts that were started with another too.
    ignored = {"MONARCH_HEARTBEAT_INTERVAL": "60s"}
    addresses = [rig.serve(host, variables=ignored)[1] for host in rig.others]
    variables = {"MONARCH_HEARTBEAT_INTERVAL": "100ms", "STAY": "1"}
    program = rig.begin(_LOST_HOST, *addresses, variables=variables)
    pids = _until_ready(program)["pids"]
    gone = rig.others[1]
    gone.cut() if how == "cut" else gone.signal(signal.SIGSTOP)
    _until_ready(program)
    if how == "cut":  # without the program it ends its processes by itself
        assert _gone(pids[2:], 20)
        rig.network.heal()
    else:
        gone.signal(signal.SIGCONT)
    assert _gone(pids[2:], 20)
    assert program.poll() is None


@pytest.mark.promise("N02")
@pytest.mark.parametrize("how", ["cut", "stop"])
def test_a_host_that_was_lost_stays_lost_to_the_program_until_it_serves_anew(hosts, how):
    rig = hosts(2)
    served, address = rig.serve(rig.others[0])
    _, other = rig.serve(rig.others[1])
    program = rig.begin(
        """
procs = attached(sys.argv[1]).spawn_procs(per_host={"gpus": 2})
who = procs.spawn("who", Who)
pids = list(who.pid.call().get(60).values())
print("ready", flush=True)
next_failure()
print("done", flush=True)
try:
    attached(sys.argv[1]).spawn_procs(per_host={"gpus": 2}).initialized.get(60)
except LinkError as error:
    tell(refused=str(error))
print("ready", flush=True)
sys.stdin.readline()
for address in sys.argv[1:]:  # other dials went on
    again = attached(address).spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    tell(**{address: list(again.pid.call().get(60).values())})
tell(old=pids)
print("done", flush=True)
""",
        *(address, other),
        variables={"MONARCH_HEARTBEAT_INTERVAL": "100ms"},
    )
    _until_ready(program)
    gone = rig.others[0]
    gone.cut() if how == "cut" else gone.signal(signal.SIGSTOP)
    _until_ready(program)
    rig.network.heal() if how == "cut" else gone.signal(signal.SIGCONT)
    assert "was lost to this one, and stays lost" in _until_ready(program)["refused"]
    served.terminate()
    assert served.wait(30) == 0
    rig.serve(gone)
    program.stdin.write("\n")
    program.stdin.flush()
    told = _until_ready(program)
    assert program.wait(60) == 0
    assert len(told[address]) == len(told[other]) == 2
    assert _gone(told["old"], 20)


def test_the_status_of_processes_of_another_host_is_told_by_its_agent(hosts):
    rig = hosts(1)
    _, address = rig.serve(rig.others[0])
    told = rig.run(
        """
from monarch.supervision import status
procs = attached(sys.argv[1]).spawn_procs(per_host={"gpus": 3})
who = procs.spawn("who", Who)
pids = list(who.pid.call().get(60).values())
hangs = who.slice(gpus=0).hang.call_one()
os.kill(pids[1], signal.SIGSTOP)
def settled():
    return [each.state for each in status(procs)] == ["busy", "stopped", "idle"]
end = time.monotonic() + 30
while not settled() and time.monotonic() < end:
    time.sleep(0.01)
found = status(procs)
tell(states=[each.state for each in found], running=found[0].running,
     known=[each.pid for each in found] == pids, others=status(procs.slice(gpus=2))[0].state)
os.kill(pids[1], signal.SIGCONT)
""",
        address,
        variables={"MONARCH_HEARTBEAT_INTERVAL": "60s"},
    )
    assert told["states"] == ["busy", "stopped", "idle"]
    assert told["running"] == ["who.hang"]
    assert told["known"]
    assert told["others"] == "idle"


@pytest.mark.promise("S06")
def test_a_stopped_process_of_another_host_is_killed_and_told(hosts):
    rig = hosts(1)
    variables = {"MONARCH_HEARTBEAT_INTERVAL": "100ms"}
    _program, address = rig.serve(rig.others[0], variables=variables)
    told = rig.run(
        """
procs = attached(sys.argv[1]).spawn_procs(per_host={"gpus": 2})
who = procs.spawn("who", Who)
pids = list(who.pid.call().get(60).values())
pending = who.hang.call()
os.kill(pids[1], signal.SIGSTOP)
when, failure = next_failure()
tell(kind=failure.kind, ranks=failure.ranks, pid=failure.pid, pids=pids)
""",
        address,
        variables=variables,
    )
    assert told["kind"] == "hung"
    assert told["ranks"] == [1]
    assert told["pid"] == told["pids"][1]
    assert _gone(told["pids"], 20)


@pytest.mark.promise("S08")
def test_a_program_that_is_killed_takes_its_processes_on_all_hosts_along(hosts):
    rig = hosts(2)
    addresses = [rig.serve(host)[1] for host in rig.others]
    program = rig.begin(_LOST_HOST, *addresses)
    pids = _until_ready(program)["pids"]
    program.kill()
    assert _gone(pids, 5)  # a second where the machine is not shared


def test_an_agent_that_is_killed_is_the_end_of_its_host(hosts):
    rig = hosts(2)
    served = [rig.serve(host) for host in rig.others]
    program = rig.begin(_LOST_HOST, *(address for _, address in served))
    pids = _until_ready(program)["pids"]
    began = time.monotonic()
    served[1][0].kill()
    told = _until_ready(program)
    assert told["noticed"] - began < 5
    assert _gone(pids[2:], 20)
    assert program.wait(60) == 0
