"""Owners under policies of their own: what they own goes and comes with them, counts are each's."""

from __future__ import annotations

import os
import signal

import pytest

from monarch.actor import Actor, context, endpoint, this_host
from monarch.supervision import Restart
from tests.promises.test_owners import alive, until
from tests.promises.test_restarts import Worker, quiet

T = 20


class Chief(Actor):
    """Owns two workers, which may die once; what comes after that it takes badly or passes on."""

    def __init__(self, ends=False):
        self.ends = ends
        procs = this_host().spawn_procs(per_host={"procs": 2}, restart=Restart(max=1, within=600))
        self.workers = procs.spawn("w", Worker)
        self.rank = context().actor_instance.rank.rank

    @endpoint
    def pids(self):
        return [os.getpid(), *self.workers.pid.call().get(T).values()]

    def __supervise__(self, failure):
        if self.ends:
            os._exit(3)
        return False


@pytest.fixture
def chiefs(cluster):
    """`chiefs(n, restart)`: owners with a policy; what nobody handled is in `failures`."""
    made = []

    def spawn(count, restart, *, ends=False):
        procs = this_host().spawn_procs(per_host={"procs": count}, restart=restart)
        made.append(procs)
        return procs.spawn("chiefs", Chief, ends)

    spawn.failures = cluster(1).failures
    yield spawn
    for procs in made:
        procs.stop().get(T)


def families(mesh, count):
    """The processes of each owner and its workers, once all of them answer."""
    return [until(lambda rank=rank: quiet(mesh.slice(procs=rank).pids)) for rank in range(count)]


@pytest.mark.promise("S02")
@pytest.mark.promise("S04")
@pytest.mark.parametrize(
    ("strategy", "same"),
    [
        ("one-for-one", [True, False, True]),
        ("rest-for-one", [True, False, False]),
        ("one-for-all", [False, False, False]),
    ],
)
def test_owners_that_start_again_take_what_they_own_with_them(chiefs, strategy, same):
    mesh = chiefs(3, Restart(strategy=strategy))
    before = families(mesh, 3)
    os.kill(before[1][0], signal.SIGKILL)
    old = [pid for family, kept in zip(before, same, strict=True) if not kept for pid in family]
    until(lambda: not any(map(alive, old)))
    after = families(mesh, 3)
    assert [one == two for one, two in zip(before, after, strict=True)] == same
    assert not set(old) & {pid for family in after for pid in family}
    assert chiefs.failures == []


def _lose_workers(mesh, rank, count):
    """Kill a worker of one owner so often; the owner's processes as they were before the last."""
    for _ in range(count):
        family = until(lambda: quiet(mesh.slice(procs=rank).pids))
        os.kill(family[1], signal.SIGKILL)
        until(lambda pid=family[1]: not alive(pid))
    return family


@pytest.mark.promise("S03")
def test_one_death_too_many_below_an_owner_climbs_past_it_and_leaves_the_others_alone(chiefs):
    mesh = chiefs(2, Restart())
    other = families(mesh, 2)[1]
    family = _lose_workers(mesh, 0, 2)
    failure = chiefs.failures.wait(1, T)
    assert failure.passed_by == ("Chief 'chiefs'",)
    assert "1 restarts within 600 s, and 1 are allowed" in failure.report()
    until(lambda: not alive(family[2]))  # the mesh has ended with the one that died
    assert alive(family[0])
    assert mesh.slice(procs=1).pids.call_one().get(T) == other
    assert len(chiefs.failures) == 1


@pytest.mark.promise("S03")
def test_an_owner_that_ends_over_it_starts_again_by_its_own_policy_with_new_counts(chiefs):
    mesh = chiefs(1, Restart(max=1, within=600), ends=True)
    for _ in range(2):  # the second time, its own policy has had its one restart
        family = _lose_workers(mesh, 0, 2)
        until(lambda pids=family: not any(map(alive, pids)))
    failure = chiefs.failures.wait(1, T)
    assert "1 restarts within 600 s, and 1 are allowed" in failure.report()
    assert failure.exit_code == 3
    assert failure.passed_by == ()
