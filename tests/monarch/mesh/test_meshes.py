"""Meshes of procs and actors: spawning, calling, slicing, sending, stopping."""

from __future__ import annotations

import asyncio
import importlib
import os
import pickle
import select
from pathlib import Path

import pytest

from monarch import config
from monarch.actor import Channel, ProcMesh, ValueMesh, this_host, this_proc
from monarch.errors import ActorError, SupervisionError
from monarch.mesh import ActorMesh, HostMesh
from tests.monarch.mesh.actors import Counter, Noted, Sensitive, Where

T = 60


def test_a_call_on_a_mesh_gives_each_ranks_value_with_its_point(spawn):
    counters = spawn(gpus=4).spawn("counters", Counter, 10, step=2)
    values = counters.increment.call().get(timeout=T)
    assert isinstance(values, ValueMesh)
    assert [(dict(point), value) for point, value in values] == [
        ({"gpus": rank}, 12) for rank in range(4)
    ]
    counters.slice(gpus=1).add.call_one(5).get(timeout=T)
    assert list(counters.read.call().get(timeout=T).values()) == [12, 17, 12, 12]


def test_the_adverbs_reach_one_some_or_all(spawn):
    counters = spawn(n=3).spawn("counters", Counter)
    counters.increment.broadcast()
    assert sorted(f.get(timeout=T) for f in counters.increment.stream()) == [2, 2, 2]
    chosen = {counters.add.choose(10).get(timeout=T) for _ in range(3)}
    assert chosen == {12}
    assert list(counters.read.call().get(timeout=T).values()) == [12, 12, 12]


def test_slices_call_views_of_the_base_ranks(spawn):
    where = spawn(a=2, b=4).spawn("where", Where)
    part = where.slice(b=slice(1, 4, 2))
    assert part.sizes == {"a": 2, "b": 2}
    points = part.point.call().get(timeout=T)
    assert [point for _, point in points] == [dict(point) for point, _ in points]
    spawned = [rank for rank, _ in part.spawn_point.call().get(timeout=T).values()]
    assert spawned == [1, 3, 5, 7]
    one = where.slice(a=1, b=2)
    assert one.point.call_one().get(timeout=T) == {}
    assert one.spawn_point.call_one().get(timeout=T) == (6, {"a": 1, "b": 2})
    split = where.split(b=("c", "d"), d=2).slice(c=1)
    assert [rank for rank, _ in split.spawn_point.call().get(timeout=T).values()] == [2, 3, 6, 7]
    flat = where.flatten("all").slice(all=slice(3, 5))
    assert [p["all"] for p in flat.point.call().get(timeout=T).values()] == [0, 1]


def test_actors_spawned_on_a_slice_have_places_of_their_own(spawn):
    procs = spawn(n=4)
    part = procs.slice(n=slice(1, 4, 2)).rename(n="m")
    where = part.spawn("part", Where)
    assert where.sizes == {"m": 2}
    assert list(where.spawn_point.call().get(timeout=T).values()) == [
        (0, {"m": 0}),
        (1, {"m": 1}),
    ]
    whole = procs.spawn("whole", Where)
    all_pids = list(whole.pid.call().get(timeout=T).values())
    assert list(where.pid.call().get(timeout=T).values()) == [all_pids[1], all_pids[3]]


@pytest.mark.report("93")
def test_a_slice_sent_to_an_actor_keeps_shape_and_order(spawn):
    where = spawn(a=2, b=4).spawn("where", Where)
    part = where.slice(b=slice(1, 3)).rename(a="x")
    other = where.slice(a=0, b=0)
    answers = other.relay.call_one(part).get(timeout=T)
    assert answers == [
        (point, point) for point in ({"x": x, "b": b} for x in range(2) for b in range(2))
    ]
    sizes, text = other.shape.call_one(part).get(timeout=T)
    assert sizes == {"x": 2, "b": 2}
    assert text == str(part)


def test_handles_are_values():
    procs = this_proc()
    where = procs.spawn("here", Where)
    copy = pickle.loads(pickle.dumps(where))  # noqa: S301 - made right here
    assert copy == where
    assert hash(copy) == hash(where)
    assert copy.pid.call_one().get(timeout=T) == os.getpid()
    assert pickle.loads(pickle.dumps(procs)) == procs  # noqa: S301
    hosts = pickle.loads(pickle.dumps(this_host()))  # noqa: S301
    assert hosts == this_host()
    with pytest.raises(RuntimeError, match="reference instead of owned"):
        hosts.shutdown()


def test_this_proc_of_the_program_is_the_programs_own_process():
    where = this_proc().spawn("here", Where)
    assert where.pid.call_one().get(timeout=T) == os.getpid()
    assert this_proc().extent.labels == []
    assert this_host().extent.labels == []
    assert this_proc().host_mesh == this_host()


def test_an_actor_spawns_in_its_own_process_and_knows_its_mesh(spawn):
    procs = spawn(n=2)
    where = procs.spawn("where", Where)
    pid, sizes, here = where.slice(n=1).own_meshes.call_one().get(timeout=T)
    assert pid == where.slice(n=1).pid.call_one().get(timeout=T)
    assert (sizes, here) == ({"n": 2}, {})


def test_an_actor_spawns_on_a_mesh_that_was_sent_to_it(spawn):
    procs = spawn(n=2)
    where = procs.spawn("where", Where)
    sent = where.slice(n=0).spawn_on.call_one(procs).get(timeout=T)
    pids = list(where.pid.call().get(timeout=T).values())
    assert list(sent.pid.call().get(timeout=T).values()) == pids


def test_an_actor_spawns_processes_that_end_with_its_own(spawn):
    procs = this_host().spawn_procs()
    where = procs.spawn("where", Where)
    pids = where.spawn_below.call_one(2).get(timeout=T)
    assert len({*pids, os.getpid(), where.pid.call_one().get(timeout=T)}) == 4
    procs.stop().get(timeout=T)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_what_an_actor_spawned_ends_with_the_actor(spawn):
    where = spawn(n=1).spawn("where", Where)
    pids = where.slice(n=0).spawn_below.call_one(2).get(timeout=T)
    watched = [os.pidfd_open(pid) for pid in pids]
    assert where.stop().get(timeout=T) is None
    for fd in watched:
        assert select.select([fd], [], [], T)[0] == [fd]
        os.close(fd)


def test_large_values_are_unpickled_when_they_are_looked_at(spawn):
    where = spawn(n=3).spawn("where", Where)
    Noted.seen.clear()
    values = where.noted.call(1 << 20).get(timeout=T)
    assert Noted.seen == []
    assert len(values.get(2).content) == 1 << 20
    assert values.get(2) is values.item(n=2)
    assert Noted.seen == [2]
    assert [value.rank for value in values.values()] == [0, 1, 2]
    assert Noted.seen == [2, 0, 1]
    small = where.noted.call(10).get(timeout=T)
    assert sorted(Noted.seen[3:]) == [0, 1, 2]
    assert [value.rank for value in small.values()] == [0, 1, 2]


def test_two_hundred_calls_in_flight_keep_their_order(spawn):
    counters = spawn(n=2).spawn("counters", Counter)
    calls = [counters.increment.call() for _ in range(200)]
    assert [call.get(timeout=T).get(1) for call in calls] == list(range(1, 201))


def test_partial_results_hold_the_errors_of_failed_ranks(spawn):
    actors = spawn(n=4).spawn("sensitive", Sensitive)
    with pytest.raises(ActorError, match="rank 2 is bad"):
        actors.check.call(bad=(2,)).get(timeout=T)
    values = actors.check.options(on_error="collect").call(bad=(1, 2)).get(timeout=T)
    assert [values.get(0), values.get(3)] == [0, 3]
    failed = dict(values.errors())
    assert [point.rank for point in failed] == [1, 2]
    assert all(isinstance(error, ActorError) for error in failed.values())
    assert isinstance(values.get(1), ActorError)


def test_call_one_on_many_names_mesh_extent_and_remedy(spawn):
    counters = spawn(gpus=2).spawn("counters", Counter)
    with pytest.raises(ValueError, match=r"'counters' \{'gpus': 2\}.*mesh of one actor.* has 2"):
        counters.read.call_one()
    with pytest.raises(TypeError, match=r"actor mesh 'counters' \{'gpus': 2\}: slice\(gpu=0\)"):
        counters.slice(gpu=0)
    with pytest.raises(IndexError, match=r"'counters' \{'gpus': 2\}: slice\(gpus=2\): index 2"):
        counters.slice(gpus=2)


def test_bad_spawns_are_refused_where_they_are_made():
    procs = this_proc()
    with pytest.raises(TypeError, match="a class that derives from Actor"):
        procs.spawn("x", int)
    with pytest.raises(TypeError, match="the actors' name"):
        procs.spawn(Counter, Counter)
    with pytest.raises(ValueError, match="the actors' name"):
        procs.spawn("", Counter)
    with pytest.raises(TypeError, match=r"name=3.*what messages call the processes"):
        this_host().spawn_procs(name=3)
    with pytest.raises(TypeError, match="Counter"):
        procs.spawn("x", Counter, 1, 2, 3)
    with pytest.raises(TypeError, match="Where"):
        procs.spawn("x", Where, 1)
    with pytest.raises(TypeError, match="'step' takes int, not str '2'"):
        procs.spawn("x", Counter, 1, "2")
    with pytest.raises(TypeError, match="cannot be pickled"):
        procs.spawn("x", Sensitive, (n for n in range(3)))


@pytest.mark.parametrize("own_time", [None, T])
def test_actors_that_do_not_stop_in_time_are_named_to_who_gave_none_of_his_own(spawn, own_time):
    where = spawn(n=2).spawn("where", Where)
    asked, told = Channel.open()
    busy = where.slice(n=1).receive.call_one(asked)
    port = told.recv().get(timeout=T)
    with config.configured(stop_actor_timeout="200ms"):
        stopping = where.stop()
    if own_time is None:
        with pytest.raises(TimeoutError, match=r"to stop: no answer within 0\.2 s from rank 1"):
            stopping.get()
        port.send(7)
    else:
        with pytest.raises(TimeoutError, match=r"no answer within 0\.5 s"):
            stopping.get(timeout=0.5)
        port.send(7)
        assert stopping.get(timeout=own_time) is None
    assert busy.get(timeout=T) == 7


def test_a_module_that_only_the_program_has_is_named_with_where_it_was_looked_for(
    spawn, failures, tmp_path, monkeypatch
):
    procs = spawn(gpus=1)
    procs.spawn("first", Counter).read.call().get(timeout=T)  # the process has its path by now
    (tmp_path / "only_here.py").write_text(
        "from monarch.actor import Actor, endpoint\n"
        "class Lone(Actor):\n"
        "    @endpoint\n"
        "    def take(self, value: object) -> None: ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    lone = importlib.import_module("only_here").Lone
    with pytest.raises(SupervisionError) as caught:
        procs.spawn("lone", lone).take.call(1).get(timeout=T)
    failure = caught.value.failure
    assert (failure.mesh_name, failure.actor, failure.ranks) == ("lone", "lone", (0,))
    assert "No module named 'only_here'; this process searched " in str(caught.value)
    assert str(Path(importlib.__file__).parent.parent) in str(caught.value)
    failures.wait(1)
    assert failures[0].mesh_name == "lone"


@pytest.mark.parametrize(
    ("request_", "error", "text"),
    [
        ({"per_host": {"n": 0}}, ValueError, "there is no process in 'n'"),
        ({"per_host": {"n": 1.5}}, TypeError, "sizes are integers"),
        ({"per_host": 4}, TypeError, "per_host is a dict of sizes by dimension"),
        ({"per_host": {1: 4}}, TypeError, "per_host is a dict of sizes by dimension"),
        ({"per_host": {"n": 10**9}}, ValueError, "1000000000 processes on a host, and there can"),
        ({"per_host": {"n": 2}, "proc_bind": [{"cpus": "0"}]}, ValueError, "2 of them, and has 1"),
        ({"proc_bind": [3]}, TypeError, "proc_bind is a list of dicts"),
        ({"bootstrap": 3}, TypeError, "bootstrap is a function without arguments"),
        ({"bootstrap_command": 3}, TypeError, "bootstrap_command is a BootstrapCommand"),
    ],
)
def test_bad_requests_for_procs_name_what_was_asked(request_, error, text):
    with pytest.raises(error, match=rf"host mesh \{{\}}: spawn_procs\(\w+=.*{text}"):
        this_host().spawn_procs(**request_)


def test_dimensions_of_hosts_and_of_procs_do_not_overlap():
    hosts = this_host().flatten("hosts")
    procs = hosts.spawn_procs(per_host={"gpus": 2})
    try:
        assert procs.sizes == {"hosts": 1, "gpus": 2}
        with pytest.raises(ValueError, match="'hosts' is a dimension of the hosts already"):
            hosts.spawn_procs(per_host={"hosts": 2})
        with pytest.raises(NotImplementedError, match="slice it to one"):
            _ = procs.host_mesh
        assert isinstance(procs.slice(hosts=0, gpus=1).host_mesh, HostMesh)
    finally:
        procs.stop().get(timeout=T)


def test_meshes_are_initialized_once_their_constructors_are_through(spawn):
    procs = spawn(n=2)
    assert procs.initialized.get(timeout=T) is True
    assert procs.spawn("counters", Counter).initialized.get(timeout=T) is True
    assert this_host().initialized.get(timeout=T) is True


def test_stopped_actors_refuse_calls_and_leave_others_alone(spawn):
    procs = spawn(n=2)
    first = procs.spawn("first", Counter)
    second = procs.spawn("second", Counter)
    first.increment.broadcast()
    assert first.stop("enough").get(timeout=T) is None
    with pytest.raises(SupervisionError, match="was stopped: enough"):
        first.read.call()
    with pytest.raises(SupervisionError, match="was stopped: enough"):
        first.slice(n=0).read.call_one()
    assert first.stop().get(timeout=T) is None
    assert second.read.call().get(timeout=T).get(0) == 0


def test_a_name_may_be_used_again_at_once(spawn):
    procs = spawn(n=1)
    first = procs.spawn("same", Counter, 1)
    first.stop().get(timeout=T)
    assert procs.spawn("same", Counter, 5).slice(n=0).read.call_one().get(timeout=T) == 5


def test_stopped_procs_are_gone_and_refuse_calls():
    procs = this_host().spawn_procs(per_host={"n": 2})
    where = procs.spawn("where", Where)
    pids = list(where.pid.call().get(timeout=T).values())
    with pytest.raises(RuntimeError, match="stop the whole mesh"):
        procs.slice(n=0).stop()
    assert procs.stop("the end").get(timeout=T) is None
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with pytest.raises(SupervisionError, match=r"proc mesh 'procs'.*was stopped: the end"):
        procs.spawn("more", Where)
    with pytest.raises(SupervisionError, match="was stopped: the end"):
        where.pid.call()
    assert procs.stop().get(timeout=T) is None


def test_procs_are_stopped_at_the_end_of_their_block():
    async def use() -> list[int]:
        async with this_host().spawn_procs(per_host={"n": 2}) as procs:
            where = procs.spawn("where", Where)
            return list((await where.pid.call()).values())

    for pid in asyncio.run(use()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_table_of_procs_shows_ranks_and_indices(spawn):
    lines = spawn(a=2, b=2).to_table().splitlines()
    assert lines[0].split() == ["rank", "a", "b", "host", "proc", "incarnation"]
    assert lines[3].split()[:3] == ["2", "1", "0"]
    assert len(lines) == 5


def test_names_of_meshes_are_public():
    assert issubclass(ActorMesh, object)
    assert isinstance(this_proc(), ProcMesh)
