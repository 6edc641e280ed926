"""Policies given at a spawn: what dies starts again by itself, as OTP's supervisors have it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from monarch.actor import Actor, ActorCrashError, SupervisionError, context, endpoint, this_host
from monarch.supervision import Decision, Restart
from tests.promises.test_owners import alive, until

T = 20


class Worker(Actor):
    """Counts, and ends in every way there is."""

    def __init__(self, log=""):
        self.count = 0
        self.log = log
        self.rank = context().actor_instance.rank.rank
        self.note("start")

    def note(self, what):
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{what} {self.rank}\n")

    @endpoint
    def add(self):
        self.count += 1
        return self.count

    @endpoint
    def pid(self):
        return os.getpid()

    @endpoint
    def slow(self, seconds):
        time.sleep(seconds)
        return os.getpid()

    @endpoint
    def exit(self, code):
        os._exit(code)

    @endpoint
    def fail(self):
        raise ValueError("beep")

    def __cleanup__(self, error):
        self.note("end")


@pytest.fixture
def mesh(cluster):
    """`mesh(n, restart)`: processes with a policy; failures that nobody handled in `.failures`."""
    made = []

    def spawn(count, restart):
        procs = this_host().spawn_procs(per_host={"procs": count}, restart=restart)
        made.append(procs)
        return procs

    spawn.failures = cluster(1).failures
    yield spawn
    for procs in made:
        procs.stop().get(T)


def pids(workers):
    """The processes of all ranks, asked until all of them answer."""

    def ask():
        with contextlib.suppress(SupervisionError):
            return list(workers.pid.call().get(T).values())

    return until(ask)


def kill(workers, rank):
    """Kill the process of a rank and return once that is known here."""
    part = workers.slice(procs=rank)
    pid = part.pid.call_one().get(T)
    asked = part.slow.call_one(T)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ActorCrashError) as raised:
        asked.get(T)
    return raised.value


@pytest.mark.promise("S02")
@pytest.mark.promise("S09")
def test_a_killed_rank_is_there_again_and_nobody_is_told(mesh):
    workers = mesh(3, Restart()).spawn("w", Worker)
    before = pids(workers)
    workers.add.call().get(T)
    error = kill(workers, 1)
    after = pids(workers)
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]
    assert list(workers.add.call().get(T).values()) == [2, 1, 2]
    assert (error.node_id, error.host, error.ranks) == (os.uname().nodename,) * 2 + ((1,),)
    assert mesh.failures == []


def test_calls_to_survivors_that_are_under_way_finish(mesh):
    workers = mesh(2, Restart()).spawn("w", Worker)
    before = pids(workers)
    slow = workers.slice(procs=0).slow.call_one(0.3)
    kill(workers, 1)
    pids(workers)
    assert slow.get(T) == before[0]


@pytest.mark.promise("S02")
@pytest.mark.promise("S04")
@pytest.mark.parametrize(
    ("strategy", "ended", "same"),
    [
        ("one-for-one", [], [True, False, True, True]),
        ("one-for-all", [3, 2, 0], [False] * 4),
        ("rest-for-one", [3, 2], [True, False, False, False]),
    ],
)
def test_a_strategy_restarts_its_part_the_last_rank_first(mesh, tmp_path, strategy, ended, same):
    log = tmp_path / "log"
    workers = mesh(4, Restart(strategy=strategy)).spawn("w", Worker, str(log))
    before = pids(workers)
    kill(workers, 1)
    until(lambda: log.read_text().count("start") == 4 + same.count(False))
    after = pids(workers)
    assert [old == new for old, new in zip(before, after, strict=True)] == same
    lines = log.read_text().splitlines()
    assert [int(line.split()[1]) for line in lines if line.startswith("end")] == ended
    assert all(line.startswith("start") for line in lines[4 + len(ended) :])
    assert mesh.failures == []


@pytest.mark.promise("S02")
@pytest.mark.parametrize(
    ("kind", "code", "comes_back"),
    [
        ("permanent", 0, True),
        ("transient", 0, False),
        ("transient", 3, True),
        ("temporary", 3, False),
    ],
)
def test_a_kind_decides_whether_a_rank_comes_back(mesh, kind, code, comes_back):
    workers = mesh(2, Restart(kind=kind)).spawn("w", Worker)
    before = pids(workers)
    with pytest.raises(ActorCrashError, match=f"exit code {code}"):
        workers.slice(procs=1).exit.call_one(code).get(T)
    if comes_back:
        assert pids(workers)[1] != before[1]
    else:
        with pytest.raises(ActorCrashError, match=f"exit code {code}"):
            workers.slice(procs=1).pid.call_one().get(T)
        assert workers.slice(procs=0).pid.call_one().get(T) == before[0]
    assert mesh.failures == []


@pytest.mark.promise("S03")
def test_one_death_too_many_ends_the_mesh_and_its_owner_is_told_once(mesh):
    workers = mesh(3, Restart(max=2, within=600)).spawn("w", Worker)
    for _ in range(2):
        kill(workers, 0)
        pids(workers)
    before = pids(workers)
    kill(workers, 2)
    failure = mesh.failures.wait(1, T)
    assert failure.ranks == (2,)
    assert failure.signal == "SIGKILL"
    assert "2 restarts within 600 s, and 2 are allowed" in failure.report()
    until(lambda: not any(map(alive, before)))
    with pytest.raises(SupervisionError, match="it has had 2 restarts"):
        workers.pid.call().get(T)
    assert len(mesh.failures) == 1


@pytest.mark.promise("S09")
def test_an_actor_that_fails_is_made_again_in_its_process(mesh):
    procs = mesh(2, None)
    workers = procs.spawn("w", Worker, restart=Restart())
    others = procs.spawn("others", Worker)
    before = pids(workers)
    workers.add.call().get(T)
    others.add.call().get(T)
    workers.slice(procs=1).fail.broadcast()
    until(lambda: pids(workers) and workers.slice(procs=1).add.call_one().get(T) == 1)
    assert pids(workers) == before
    assert list(workers.add.call().get(T).values()) == [2, 2]
    assert list(others.add.call().get(T).values()) == [2, 2]
    assert mesh.failures == []


@pytest.mark.promise("S04")
def test_actors_of_one_for_all_end_backwards_and_start_again(mesh, tmp_path):
    log = tmp_path / "log"
    policy = Restart(strategy="one-for-all")
    workers = mesh(3, None).spawn("w", Worker, str(log), restart=policy)
    before = pids(workers)
    workers.slice(procs=0).fail.broadcast()
    until(lambda: log.read_text().count("start") == 6)
    assert pids(workers) == before
    ends = [line for line in log.read_text().splitlines() if line.startswith("end")]
    assert [end for end in ends if end != "end 0"] == ["end 2", "end 1"]
    assert mesh.failures == []


@pytest.mark.promise("S03")
def test_actors_that_fail_too_often_end_and_are_told_of(mesh):
    workers = mesh(2, None).spawn("w", Worker, restart=Restart(max=1))
    before = pids(workers)
    workers.add.call().get(T)
    part = workers.slice(procs=1)
    part.fail.broadcast()
    until(lambda: pids(workers) and part.add.call_one().get(T) == 1)
    part.fail.broadcast()
    failure = mesh.failures.wait(1, T)
    assert "actor mesh 'w' ends: it has had 1 restarts within 60 s" in failure.report()
    assert str(failure.causes[-1]) == "ValueError: beep"
    with pytest.raises(SupervisionError):
        workers.pid.call().get(T)
    assert all(map(alive, before))


class Chief(Actor):
    """Owns workers, and decides what its constructor was told to."""

    def __init__(self, decision):
        self.decision = decision
        self.asked = 0
        self.workers = this_host().spawn_procs(per_host={"procs": 2}).spawn("w", Worker)

    @endpoint
    def pids(self):
        return list(self.workers.pid.call().get(T).values())

    @endpoint
    def fail(self):
        self.workers.slice(procs=1).fail.broadcast()

    @endpoint
    def failures(self):
        return self.asked

    def __supervise__(self, failure):
        self.asked += 1
        return self.decision


@pytest.mark.promise("S02")
def test_an_owner_that_decides_for_a_restart_gets_one(mesh):
    chief = mesh(1, None).spawn("chief", Chief, Decision.RESTART)
    before = chief.pids.call_one().get(T)
    os.kill(before[1], signal.SIGKILL)
    until(lambda: chief.failures.call_one().get(T) == 1)
    after = until(lambda: quiet(chief.pids))
    assert after[0] == before[0]
    assert after[1] != before[1]
    chief.fail.call_one().get(T)
    until(lambda: chief.failures.call_one().get(T) == 2)
    assert until(lambda: quiet(chief.pids)) == after
    assert mesh.failures == []


def quiet(asked):
    with contextlib.suppress(Exception):
        return asked.call_one().get(T)


@pytest.mark.promise("S03")
def test_an_owner_that_always_restarts_is_stopped_by_the_default_intensity(mesh):
    chief = mesh(1, None).spawn("chief", Chief, Decision.RESTART)
    for _ in range(4):
        pid = until(lambda: quiet(chief.pids))[1]
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: not alive(pid))
        until(lambda: mesh.failures or quiet(chief.pids))
    failure = mesh.failures.wait(1, T)
    assert "3 restarts within 60 s, and 3 are allowed" in failure.report()
    assert "not handled by Chief 'chief' (it wanted a restart" in failure.report()


@pytest.mark.promise("S02")
@pytest.mark.parametrize("decision", [Decision.ESCALATE, False])
def test_a_failure_that_an_owner_escalates_climbs(mesh, decision):
    chief = mesh(1, None).spawn("chief", Chief, decision)
    pid = chief.pids.call_one().get(T)[1]
    os.kill(pid, signal.SIGKILL)
    assert mesh.failures.wait(1, T).passed_by == ("Chief 'chief'",)


def test_a_mesh_that_is_stopped_starts_nothing_again(mesh):
    procs = mesh(2, Restart(backoff=30))
    workers = procs.spawn("w", Worker)
    kill(workers, 0)
    pids(workers)
    kill(workers, 0)
    procs.stop().get(T)
    assert mesh.failures == []


@pytest.mark.parametrize("policy", ["always", 3])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(TypeError, match=r"restart is a monarch.supervision.Restart, or None"):
        this_host().spawn_procs(per_host={"procs": 1}, restart=policy)
