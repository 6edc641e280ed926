"""Every death is told once, with its cause, to who owns what died."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from monarch.actor import Actor, ActorCrashError, SupervisionError, endpoint
from tests.promises.actors import Manager, Mortal

T = 60


def settled(cluster, count=1):
    """The failures once `count` are there; a report too many has a moment to come."""
    cluster.failures.wait(count, T)
    with pytest.raises(TimeoutError):
        cluster.failures.wait(count + 1, 0.1)
    return list(cluster.failures)


@pytest.mark.promise("S01")
@pytest.mark.report("78", "80")
@pytest.mark.parametrize(
    ("endpoint", "argument", "kind", "text"),
    [
        ("leave", 7, "exit", "exit code 7"),
        ("train_step", "SIGKILL", "signal", "signal SIGKILL"),
        ("train_step", "SIGSEGV", "signal", "signal SIGSEGV"),
        ("eat_memory", 1 << 31, "signal", "signal SIGABRT"),
    ],
)
def test_the_end_of_a_process_is_told_once_to_caller_and_owner(
    cluster, endpoint, argument, kind, text
):
    mesh = cluster(3)
    trainers = mesh.spawn("trainers", Mortal)
    pids = list(trainers.pid.call().get(T).values())
    with pytest.raises(ActorCrashError) as raised:
        getattr(trainers.slice(procs=1), endpoint).call_one(argument).get(T)
    (failure,) = settled(mesh)
    assert failure.kind == kind
    assert (failure.mesh_name, failure.ranks, failure.pid) == ("trainers", (1,), pids[1])
    assert (failure.actor, failure.endpoint) == ("trainers", endpoint)
    assert failure.host == os.uname().nodename
    assert failure.incarnation == 0
    assert abs(failure.time - time.time()) < T
    assert raised.value.ranks == (1,)
    assert raised.value.failure.death == failure.death
    for told in (str(failure), failure.report(), str(raised.value)):
        assert "rank 1" in told
        assert f"pid {pids[1]}" in told
        assert text in told
        assert f"trainers.{endpoint}" in told


@pytest.mark.promise("S01", "F02")
def test_a_process_that_runs_out_of_stack_is_a_death_like_any_other(cluster):
    mesh = cluster(1)
    trainers = mesh.spawn("trainers", Mortal)
    with pytest.raises(ActorCrashError, match="signal SIGSEGV"):
        trainers.recurse_in_c.call().get(T)
    (failure,) = settled(mesh)
    assert failure.signal == "SIGSEGV"


@pytest.mark.promise("S01")
@pytest.mark.parametrize("fault", ["beep", "two\nlines"])
@pytest.mark.report("81")
def test_a_constructor_that_raises_is_told_with_and_without_a_call(cluster, fault):
    mesh = cluster(2)
    trainers = mesh.spawn("trainers", Mortal, fault)
    failure = mesh.failures.wait(1, 30)
    assert failure.kind == "init"
    assert failure.causes[-1].type == "ValueError"
    assert failure.causes[-1].text == fault
    with pytest.raises(SupervisionError, match=fault.partition("\n")[0]) as raised:
        trainers.pid.call().get(30)
    assert not isinstance(raised.value, ActorCrashError)
    if len(failure.ranks) == 1:
        mesh.failures.wait(2, T)
    told = [rank for each in settled(mesh, len(mesh.failures)) for rank in each.ranks]
    assert sorted(told) == [0, 1]


@pytest.mark.promise("S01")
def test_a_broadcast_that_raises_reaches_the_owner_and_later_callers(cluster):
    mesh = cluster(2)
    trainers = mesh.spawn("trainers", Mortal)
    trainers.pid.call().get(T)
    trainers.slice(procs=1).fail.broadcast("beep")
    (failure,) = settled(mesh)
    assert (failure.kind, failure.ranks, failure.endpoint) == ("error", (1,), "fail")
    assert str(failure.causes[-1]) == "ValueError: beep"
    with pytest.raises(SupervisionError, match="beep"):
        trainers.pid.call().get(T)
    assert trainers.slice(procs=0).pid.call_one().get(T)


@pytest.mark.promise("S01")
@pytest.mark.report("82")
def test_an_endpoint_with_a_port_that_raises_before_it_replies_fails_its_caller(cluster):
    mesh = cluster(1)
    trainers = mesh.spawn("trainers", Mortal)
    with pytest.raises(SupervisionError, match="beep"):
        trainers.fail_before_reply.call("beep").get(30)
    (failure,) = settled(mesh)
    assert failure.endpoint == "fail_before_reply"


@pytest.mark.promise("S01")
def test_an_exception_that_is_meant_to_end_everything_ends_the_actor_alone(cluster):
    mesh = cluster(1)
    trainers, others = mesh.spawn("trainers", Mortal), mesh.spawn("others", Mortal)
    with pytest.raises(SupervisionError, match="SystemExit: 3"):
        trainers.exit_by_exception.call().get(T)
    (failure,) = settled(mesh)
    assert failure.mesh_name == "trainers"
    assert others.pid.call().get(T)


class Ends:
    """Raises SystemExit in whoever unpickles it."""

    def __reduce__(self):
        return sys.exit, (9,)


class Later(Actor):
    @endpoint
    async def take(self, what):
        return what


class Now(Actor):
    def __init__(self, what=None):
        self.what = what

    @endpoint
    def take(self, what):
        return what


@pytest.mark.promise("S01")
@pytest.mark.parametrize("cls", [Later, Now])
def test_an_argument_that_ends_who_reads_it_ends_the_actor_alone(cluster, cls):
    mesh = cluster(1)
    takers, others = mesh.spawn("takers", cls), mesh.spawn("others", Mortal)
    with pytest.raises(SupervisionError, match="SystemExit: 9"):
        takers.take.call(Ends()).get(T)
    unmade = mesh.spawn("unmade", Now, Ends())
    with pytest.raises(SupervisionError, match="SystemExit: 9"):
        unmade.take.call(1).get(T)
    settled(mesh, 2)
    assert others.pid.call().get(T)


@pytest.mark.promise("S01")
def test_an_idle_process_that_is_killed_is_told_without_any_call(cluster):
    mesh = cluster(3)
    trainers = mesh.spawn("trainers", Mortal)
    trainers.pid.call().get(T)
    pid = mesh.kill(2)
    (failure,) = settled(mesh)
    assert (failure.ranks, failure.pid, failure.endpoint) == ((2,), pid, "")
    with pytest.raises(ActorCrashError) as raised:
        trainers.pid.call().get(T)
    assert raised.value.ranks == (2,)
    assert len(trainers.slice(procs=slice(0, 2)).pid.call().get(T)) == 2


@pytest.mark.promise("S01")
def test_several_processes_that_die_at_once_are_each_told(cluster):
    mesh = cluster(4)
    trainers = mesh.spawn("trainers", Mortal)
    trainers.pid.call().get(T)
    pids = {rank: mesh.pid(rank) for rank in (0, 2, 3)}
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    found = settled(mesh, 3)
    assert {(each.ranks, each.pid) for each in found} == {((r,), p) for r, p in pids.items()}


def test_a_process_without_actors_is_told_to_who_spawned_it(cluster):
    mesh = cluster(2)
    mesh.kill(1)
    (failure,) = settled(mesh)
    assert (failure.mesh_name, failure.ranks) == ("procs", (1,))


@pytest.mark.report("76")
def test_what_an_owner_handles_goes_no_further(cluster):
    mesh = cluster(1)
    manager = mesh.spawn("manager", Manager, 1)
    manager.hire.call(2).get(T)
    manager.order.call("fail", "beep").get(T)
    heard = await_told(manager)
    assert heard[0].causes[-1].text == "beep"
    assert mesh.failures == []
    assert manager.told.call_one().get(T)


@pytest.mark.promise("S01", "S05")
@pytest.mark.report("76")
@pytest.mark.parametrize("answer", [False, None, "raise"])
def test_what_an_owner_does_not_handle_climbs_to_the_client_once(cluster, answer):
    mesh = cluster(1)
    manager = mesh.spawn("manager", Manager, answer)
    manager.hire.call(1).get(T)
    manager.order.call("fail", "beep").get(T)
    (failure,) = settled(mesh)
    assert (failure.mesh_name, failure.causes[-1].text) == ("workers", "beep")
    (owner,) = failure.passed_by
    assert owner.startswith("Manager 'manager'")
    assert ("cannot help" in owner) == (answer == "raise")


@pytest.mark.promise("S01")
def test_the_root_cause_of_a_death_three_levels_down_is_the_first_thing_told(cluster):
    mesh = cluster(1)
    top = mesh.spawn("top", Manager, False)
    top.hire.call(1).get(T)
    pid = top.hire.call_one(1).get(T)[0]
    top.order.call("leave", 9).get(T)
    (failure,) = settled(mesh)
    assert str(failure).startswith("rank 0 of mesh 'workers' ended with exit code 9")
    assert failure.pid == pid


@pytest.mark.promise("S01")
def test_processes_of_one_owner_with_actors_of_another_are_told_to_who_owns_the_actors(cluster):
    lent = cluster(2)
    manager = cluster(1).spawn("manager", Manager, True, lent.procs)
    manager.hire.call(2).get(T)
    lent.kill(1)
    heard = await_told(manager)
    assert (heard[0].mesh_name, heard[0].ranks) == ("workers", (1,))
    assert lent.failures == []


def await_told(manager):
    """What a manager has heard, once it has heard something."""
    end = time.monotonic() + T
    while time.monotonic() < end:
        heard = manager.told.call_one().get(T)
        if heard:
            return heard
    raise AssertionError("the manager was told nothing")
