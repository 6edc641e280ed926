"""Processes that stand by: one takes the place of a lost rank, with its imports done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from monarch.actor import ActorCrashError, context, endpoint, this_host
from tests.monarch.mesh.actors import Where
from tests.promises.programs import ENVIRONMENT
from tests.promises.test_owners import alive, until

T = 60


class Placed(Where):
    @endpoint
    def place(self):
        return (
            context().actor_instance.rank.rank,
            {name: os.environ.get(name) for name in ("RANK", "LOCAL_RANK", "ROCR_VISIBLE_DEVICES")},
        )


@pytest.fixture
def stood_by(failures):
    made = []

    def spawn(count, **options):
        made.append(this_host().spawn_procs({"gpus": count}, spares=1, **options))
        return made[-1]

    yield spawn
    for procs in made:
        procs.stop().get(timeout=T)


def ready(procs):
    """The pids of those that stand by, once they are ready."""
    (spares,) = procs._procs.request.spares
    spares.ready().get(T)
    return list(spares._procs.spawn("where", Where).pid.call().get(T).values())


def kill(actors, rank):
    part = actors.slice(gpus=rank)
    pid = part.pid.call_one().get(T)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ActorCrashError):
        until(lambda: not part.pid.call_one().get(T))


def test_one_that_stands_by_takes_the_place_of_a_lost_rank(stood_by, failures):
    procs = stood_by(3)
    actors = procs.spawn("placed", Placed)
    before = list(actors.place.call().get(T).values())
    (spare,) = ready(procs)
    kill(actors, 1)
    procs.respawn([1]).get(T)
    assert actors.slice(gpus=1).pid.call_one().get(T) == spare
    assert list(actors.place.call().get(T).values()) == before
    failures.wait(1)
    assert len(failures) == 1


def test_another_stands_by_afterwards(stood_by, failures):
    procs = stood_by(2)
    actors = procs.spawn("placed", Placed)
    for rank in (0, 1, 0):
        (spare,) = ready(procs)
        kill(actors, rank)
        procs.respawn([rank]).get(T)
        assert actors.slice(gpus=rank).pid.call_one().get(T) == spare
    failures.wait(3)


def test_it_has_imported_what_the_actors_need(stood_by, failures, tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        textwrap.dedent(
            """
            import os
            from monarch.actor import Actor, endpoint

            where = os.environ.get("RANK"), os.getpid()

            class Late(Actor):
                @endpoint
                def pid(self):
                    return os.getpid()

                @endpoint
                def imported(self):
                    return where
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    from slow_to_import import Late  # noqa: PLC0415 - made just now

    procs = stood_by(2)
    actors = procs.spawn("late", Late)
    actors.pid.call().get(T)
    (spare,) = ready(procs)
    kill(actors, 1)
    procs.respawn([1]).get(T)
    # Imported when it had no rank of this mesh yet.
    assert actors.slice(gpus=1).imported.call_one().get(T) == ("0", spare)


def test_a_dead_one_is_passed_over_and_is_no_failure(stood_by, failures):
    procs = stood_by(2)
    actors = procs.spawn("placed", Placed)
    actors.place.call().get(T)
    (spare,) = ready(procs)
    os.kill(spare, signal.SIGKILL)
    until(lambda: not alive(spare))
    kill(actors, 0)
    procs.respawn([0]).get(T)
    assert actors.slice(gpus=0).pid.call_one().get(T) != spare
    (another,) = ready(procs)
    kill(actors, 1)
    procs.respawn([1]).get(T)
    assert actors.slice(gpus=1).pid.call_one().get(T) == another
    failures.wait(2)
    assert {one.mesh_name for one in failures} == {"placed"}


def test_bootstrap_runs_when_it_takes_a_rank(stood_by, failures):
    def bootstrap():
        os.environ["BOOTED_AS"] = os.environ["LOCAL_RANK"]

    procs = stood_by(2, bootstrap=bootstrap)
    actors = procs.spawn("placed", Placed)
    actors.place.call().get(T)
    ready(procs)
    kill(actors, 1)
    procs.respawn([1]).get(T)
    assert actors.slice(gpus=1).variable.call_one("BOOTED_AS").get(T) == "1"
    failures.wait(1)


def test_lines_are_those_of_the_rank_that_it_took():
    program = """
        import os
        import monarch.actor
        from monarch.actor import Actor, endpoint, this_host

        monarch.actor.unhandled_fault_hook = lambda failure: None

        class Printer(Actor):
            @endpoint
            def say(self):
                print("here", flush=True)

        procs = this_host().spawn_procs({"n": 2}, name="these", spares=1)
        actors = procs.spawn("printer", Printer)
        actors.initialized.get()
        procs.respawn([1]).get()
        actors.slice(n=1).say.call_one().get()
        procs.stop().get()
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=T,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "[these 1] here\n"


def test_those_that_stand_by_end_with_the_mesh(stood_by):
    procs = stood_by(1)
    (spare,) = ready(procs)
    procs.stop().get(T)
    until(lambda: not alive(spare))


@pytest.mark.parametrize("spares", [-1, 1.5])
def test_a_number_that_cannot_be_is_refused(spares):
    with pytest.raises(ValueError, match="spares is a number of processes"):
        this_host().spawn_procs({"gpus": 1}, spares=spares)
