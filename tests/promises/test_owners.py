"""Owners: what they spawned ends with them; how actors end themselves; what they clean up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monarch.actor import Actor, ActorError, SupervisionError, context, endpoint
from tests.promises.actors import Manager, Mortal
from tests.watching import alive, until

T = 60


@pytest.mark.promise("S08")
@pytest.mark.parametrize("how", ["stop", "fail", "kill"])
def test_what_an_actor_spawned_ends_with_it(cluster, how):
    mesh = cluster(1)
    manager = mesh.spawn("manager", Manager, True)
    pids = manager.hire.call_one(2).get(T)
    assert all(map(alive, pids))
    if how == "stop":
        manager.stop().get(T)
    elif how == "fail":
        manager.order.broadcast("no_such_endpoint", 1)
        assert mesh.failures.wait(1, T).mesh_name == "manager"
    else:
        mesh.kill(0)
        mesh.failures.wait(1, T)
    until(lambda: not any(map(alive, pids)))


def test_actors_in_the_processes_of_others_end_with_their_owner(cluster):
    lent, mesh = cluster(2), cluster(1)
    manager = mesh.spawn("manager", Manager, True, lent.procs)
    manager.hire.call(2).get(T)
    workers = manager.handle.call_one().get(T)
    assert len(workers.pid.call().get(T)) == 2
    mesh.kill(0)
    mesh.failures.wait(1, T)
    with pytest.raises(SupervisionError):
        until(lambda: not workers.pid.call().get(T))
    assert len(lent.spawn("others", Mortal).pid.call().get(T)) == 2


class Quitter(Actor):
    """Ends itself, and says so in a file."""

    def __init__(self, folder):
        self.folder = Path(folder)

    @endpoint
    def pid(self):
        return os.getpid()

    @endpoint
    def quit(self, how, reason):
        getattr(context().actor_instance, how)(reason)

    @endpoint
    def fail(self):
        raise ValueError("beep")

    def __cleanup__(self, error):
        (self.folder / "clean").write_text("" if error is None else repr(error))


class AsyncQuitter(Quitter):
    @endpoint
    async def pid(self):
        return os.getpid()

    async def __cleanup__(self, error):
        (self.folder / "clean").write_text("" if error is None else repr(error))


class Untidy(Quitter):
    def __cleanup__(self, error):
        raise ValueError(f"left a mess after {error}")


class AsyncUntidy(AsyncQuitter):
    async def __cleanup__(self, error):
        raise ValueError(f"left a mess after {error}")


@pytest.mark.parametrize("kind", [Untidy, AsyncUntidy])
def test_a_cleanup_that_raises_is_told_to_who_waits_for_the_end(cluster, tmp_path, kind):
    mesh = cluster(2)
    untidy = mesh.spawn("untidy", kind, str(tmp_path))
    untidy.pid.call().get(T)
    with pytest.raises(ActorError, match=r"'untidy'.*ValueError: left a mess after None"):
        untidy.stop().get(T)
    untidy.stop().get(T)
    with pytest.raises(SupervisionError, match="stopped"):
        untidy.pid.call().get(T)
    mesh.procs.stop().get(T)
    assert mesh.failures == []


@pytest.mark.promise("S01")
@pytest.mark.parametrize("kind", [Quitter, AsyncQuitter])
@pytest.mark.parametrize("how", ["abort", "kill"])
def test_an_actor_that_aborts_itself_is_a_failure_with_its_reason(cluster, tmp_path, kind, how):
    mesh = cluster(1)
    quitter = mesh.spawn("quitter", kind, str(tmp_path))
    quitter.quit.call(how, "enough of it").get(T)
    failure = mesh.failures.wait(1, T)
    assert (failure.kind, failure.message, failure.causes) == ("aborted", "enough of it", ())
    assert str(failure).startswith("rank 0 of mesh 'quitter' was aborted: enough of it [pid ")
    with pytest.raises(SupervisionError, match="enough of it"):
        quitter.pid.call().get(T)


@pytest.mark.parametrize("kind", [Quitter, AsyncQuitter])
def test_an_actor_that_stops_itself_is_no_failure_and_cleans_up(cluster, tmp_path, kind):
    mesh = cluster(1)
    quitter = mesh.spawn("quitter", kind, str(tmp_path))
    quitter.quit.call("stop", "done").get(T)
    until((tmp_path / "clean").exists)
    with pytest.raises(SupervisionError, match="stopped"):
        until(lambda: not quitter.pid.call().get(T))
    assert (tmp_path / "clean").read_text() == ""
    mesh.procs.stop().get(T)
    assert mesh.failures == []


@pytest.mark.parametrize("kind", [Quitter, AsyncQuitter])
def test_an_actor_that_fails_cleans_up_with_what_made_it_fail(cluster, tmp_path, kind):
    mesh = cluster(1)
    quitter = mesh.spawn("quitter", kind, str(tmp_path))
    quitter.fail.broadcast()
    mesh.failures.wait(1, T)
    until((tmp_path / "clean").exists)
    until(lambda: (tmp_path / "clean").read_text() == "ValueError('beep')")


class AsyncManager(Actor):
    def __init__(self):
        self.heard = []

    @endpoint
    async def hire(self, procs):
        self.workers = procs.spawn("workers", Mortal)
        return list((await self.workers.pid.call()).values())

    @endpoint
    async def fail_one(self):
        self.workers.fail.broadcast("beep")

    @endpoint
    async def told(self):
        return self.heard

    async def __supervise__(self, failure):
        self.heard.append(failure)
        return True


def test_an_owner_on_an_event_loop_is_asked_there(cluster):
    lent, mesh = cluster(1), cluster(1)
    manager = mesh.spawn("manager", AsyncManager)
    manager.hire.call(lent.procs).get(T)
    manager.fail_one.call().get(T)
    heard = until(lambda: manager.told.call_one().get(T))
    assert heard[0].causes[-1].text == "beep"
    assert mesh.failures == []


class Asking(Manager):
    @endpoint
    def ask(self):
        with pytest.raises(SupervisionError):
            self.workers.pid.call().get(T)
        return os.getpid()


def test_an_owner_that_has_dealt_with_a_death_and_calls_the_dead_is_told_and_lives_on(cluster):
    mesh = cluster(1)
    manager = mesh.spawn("manager", Asking, True)
    manager.hire.call_one(1).get(T)
    manager.order.call_one("fail", "beep").get(T)
    until(lambda: manager.told.call_one().get(T))
    assert manager.ask.call_one().get(T) == manager.ask.call_one().get(T)
    assert len(manager.told.call_one().get(T)) == 1
    assert mesh.failures == []
