"""`ProcessMesh`: nodes that die are replaced in place, and the same handles answer again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import monarch.actor
from ci.rigs import keeper
from ci.slurm import environments
from monarch.actor import Actor, ActorCrashError, SupervisionError, endpoint
from monarch.errors import JobError
from monarch.job import ProcessJob
from monarch.mesh import ProcessMesh, ProcMesh
from monarch.supervision import Restart
from tests.promises.test_owners import alive, until

T = 60


class Worker(Actor):
    def __init__(self):
        self.count = 0

    @endpoint
    def where(self):
        self.count += 1
        return os.environ["MONARCH_NODE_ID"], os.getpid(), self.count

    @endpoint
    def agent(self):
        """The host agent of this process: the parent of the zygote."""
        zygote = os.getppid()
        with open(f"/proc/{zygote}/stat") as file:  # noqa: PTH123 - of the kernel's
            return int(file.read().rpartition(")")[2].split()[1])

    @endpoint
    def slow(self, seconds):
        time.sleep(seconds)
        return os.getpid()

    @endpoint
    def relay(self, mesh):
        return list(mesh.where.call().get(T).values())

    @endpoint
    def die(self):
        os._exit(3)


@pytest.fixture
def failures(monkeypatch):
    found = []
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", found.append)
    return found


@pytest.fixture
def local():
    made = []

    def make(*args, **kwargs):
        made.append(ProcessMesh.local(*args, **kwargs))
        return made[-1]

    yield make
    for mesh in made:
        mesh.stop().get(T)


def crash(workers, node):
    """Kill the host agent of a node; the error of a call that was under way there."""
    part = workers.slice(hosts=node)
    agent = next(iter(part.agent.call().get(T).values()))
    asked = part.slow.call(T)
    os.kill(agent, signal.SIGKILL)
    with pytest.raises(ActorCrashError) as raised:
        asked.get(T)
    return raised.value


def test_a_spare_host_that_dies_while_it_stands_by_is_no_failure(local, failures):
    mesh = local(hosts=1, spares=1)
    workers = mesh.spawn("w", Worker)
    workers.where.call().get(T)
    (spare,) = mesh._procs.request.spares
    spare.ready().get(T)
    there = [pid for pid, known in environments() if known.get("MONARCH_NODE_ID") == mesh.spares[0]]
    (agent,) = (pid for pid in there if keeper.parent(pid) == os.getpid())
    os.kill(agent, signal.SIGKILL)
    until(lambda: spare._placement.lost)
    workers.die.broadcast()
    until(lambda: failures)
    assert [one.mesh_name for one in failures] == ["w"]


@pytest.mark.promise("S09")
def test_a_lost_node_is_replaced_by_a_spare_and_the_same_handle_answers(local, failures):
    mesh = local(hosts=3, gpus_per_host=2, spares=1)
    workers = mesh.spawn("w", Worker)
    before = list(workers.where.call().get(T).values())
    (spare,) = mesh.spares
    survivor = workers.slice(hosts=0).slow.call(0.5)
    failure = crash(workers, 1)
    assert failure.node_id == before[2][0] == mesh.nodes[1]
    assert failure.host
    mesh.replace_node(failure.node_id)
    after = list(workers.where.call().get(T).values())
    assert [new[1] == old[1] for new, old in zip(after, before, strict=True)] == [
        *[True, True],
        *[False, False],
        *[True, True],
    ]
    assert [one[2] for one in after] == [2, 2, 1, 1, 2, 2]
    assert {one[0] for one in after[2:4]} == {spare}
    assert mesh.nodes[1] == spare
    assert set(survivor.get(T).values()) == {before[0][1], before[1][1]}
    until(lambda: failures)
    assert {(one.signal, one.node_id) for one in failures} == {("SIGKILL", failure.node_id)}


def test_without_a_spare_the_job_gives_another_host(local, failures):
    mesh = local(hosts=2)
    workers = mesh.spawn("w", Worker)
    before = list(workers.where.call().get(T).values())
    failure = crash(workers, 0)
    mesh.replace_node(failure.node_id).get(T)
    after = list(workers.where.call().get(T).values())
    assert after[1][1] == before[1][1]
    assert after[0][0] not in {one[0] for one in before}
    assert len(failures) == 1


def test_spares_are_filled_up_and_a_dead_one_is_passed_over(local, failures):
    mesh = local(hosts=2, spares=1)
    workers = mesh.spawn("w", Worker)
    workers.where.call().get(T)
    first = mesh.spares[0]
    mesh.replace_node(crash(workers, 0).node_id)
    workers.where.call().get(T)
    until(lambda: mesh.spares)
    assert mesh.spares != [first]
    mesh.replace_node(crash(workers, 0).node_id)
    assert len(workers.where.call().get(T)) == 2
    assert len({*mesh.nodes, *mesh.spares, first}) >= 3
    assert len(failures) == 2


def test_a_node_is_replaced_once_however_many_of_its_ranks_failed(local, failures):
    mesh = local(hosts=2, gpus_per_host=2, spares=1)
    workers = mesh.spawn("w", Worker)
    node = crash(workers, 1).node_id
    mesh.replace_node(node)
    first = list(workers.where.call().get(T).values())
    assert mesh.replace_node(node).get(T) is None
    again = list(workers.where.call().get(T).values())
    assert [one[:2] for one in again] == [one[:2] for one in first]
    with pytest.raises(ValueError, match=r"replace_node\('n9'\): the nodes are hosts_0, "):
        mesh.replace_node("n9")
    until(lambda: failures)


def test_all_lost_nodes_are_replaced_without_naming_them(local, failures):
    mesh = local(hosts=3, spares=1)
    workers = mesh.spawn("w", Worker)
    before = list(workers.where.call().get(T).values())
    for node in (0, 2):
        crash(workers, node)
    mesh.replace_node().get(T)
    after = list(workers.where.call().get(T).values())
    assert [new[1] == old[1] for new, old in zip(after, before, strict=True)] == [
        False,
        True,
        False,
    ]
    assert len(failures) == 2


class OneLeft(ProcessJob):
    """Has no other host to give."""

    def _replace(self, node_id):
        raise JobError(f"there is none for {node_id}")


@pytest.mark.promise("S09")
def test_nodes_for_which_there_is_no_other_leave_those_that_have_one_whole(failures):
    mesh = ProcessMesh(OneLeft({"hosts": 3, "spares": 1}), 3, 1, spares=1)
    try:
        workers = mesh.spawn("w", Worker)
        before = list(workers.where.call().get(T).values())
        (spare,) = mesh.spares
        for node in (0, 2):
            crash(workers, node)
        with pytest.raises(JobError, match="there is none for hosts_2"):
            mesh.replace_node()
        assert mesh.nodes == [spare, "hosts_1", "hosts_2"]
        first, second = workers.slice(hosts=slice(0, 2)).where.call().get(T).values()
        assert (first[0], second[:2]) == (spare, before[1][:2])
        with pytest.raises(ActorCrashError):
            workers.slice(hosts=2).where.call().get(T)
        with pytest.raises(JobError, match="there is none for hosts_2"):
            mesh.replace_node()
        assert workers.slice(hosts=0).where.call_one().get(T)[:2] == first[:2]
    finally:
        mesh.stop().get(T)


class Slow(Worker):
    """Takes its time to be made again."""

    def __init__(self):
        super().__init__()
        if os.environ["MONARCH_NODE_ID"] != "hosts_1":
            time.sleep(1)


@pytest.mark.promise("S09")
@pytest.mark.parametrize("begins", [True, False])
def test_a_node_that_is_lost_while_it_takes_the_place_of_another_is_replaced_as_well(
    local, failures, begins
):
    mesh = local(hosts=2, spares=1)
    workers = mesh.spawn("w", Slow)
    workers.where.call().get(T)
    lost = crash(workers, 1).node_id
    (spare,) = mesh.spares
    (worker,) = [one for one in mesh._job._workers["spares"] if one.node == spare]
    if not begins:
        os.kill(worker.pid, signal.SIGSTOP)
    taking = mesh.replace_node(lost)
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(ActorCrashError) as raised:
        taking.get(T)
    assert raised.value.node_id == spare
    mesh.replace_node(raised.value.node_id).get(T)
    assert mesh.nodes[1] not in {lost, spare}
    assert [one[0] for one in workers.where.call().get(T).values()] == mesh.nodes


@pytest.mark.promise("S09")
def test_several_threads_that_replace_a_node_use_up_one_host(local, failures):
    mesh = local(hosts=2, spares=2)
    workers = mesh.spawn("w", Worker)
    workers.where.call().get(T)
    lost = crash(workers, 1).node_id
    spares = mesh.spares
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(mesh.replace_node, lost) for _ in range(4)]:
            done.result(T).get(T)
    assert mesh.nodes == ["hosts_0", spares[0]]
    assert [one[0] for one in workers.where.call().get(T).values()] == mesh.nodes


@pytest.mark.promise("S06")
def test_a_node_that_comes_back_after_it_was_replaced_acts_on_nothing(local, failures):
    """Its processes are stopped, replaced, and go on: nothing of what they do has an effect."""
    mesh = local(hosts=2, spares=1)
    workers = mesh.spawn("w", Worker)
    keeper = mesh.spawn("keeper", Worker).slice(hosts=0)
    (_, pid, _), *_rest = workers.slice(hosts=1).where.call().get(T).values()
    agent = next(iter(workers.slice(hosts=1).agent.call().get(T).values()))
    asked = workers.slice(hosts=1).relay.call(keeper)
    assert len(asked.get(T)) == 1
    for one in (agent, pid):
        os.kill(one, signal.SIGSTOP)
    pending = workers.slice(hosts=1).relay.call(keeper)
    mesh.replace_node(mesh.nodes[1])
    assert next(iter(workers.slice(hosts=1).where.call().get(T).values()))[1] != pid
    with pytest.raises(ActorCrashError):
        pending.get(T)
    for one in (agent, pid):
        try:
            os.kill(one, signal.SIGCONT)
        except ProcessLookupError:
            continue
    until(lambda: not alive(pid))
    assert keeper.where.call_one().get(T)[2] == 2
    assert failures == []


def test_a_handle_that_was_sent_away_reaches_the_new_node(local, failures):
    mesh = local(hosts=2, spares=1)
    workers = mesh.spawn("w", Worker)
    other = mesh.spawn("other", Worker).slice(hosts=0)
    before = other.relay.call_one(workers).get(T)
    mesh.replace_node(crash(workers, 1).node_id)
    after = other.relay.call_one(workers).get(T)
    assert after[0][1] == before[0][1]
    assert after[1][1] != before[1][1]
    assert len(failures) == 1


def test_a_process_alone_starts_again_by_a_policy_on_its_node(local, failures):
    mesh = local(hosts=2, restart=Restart())
    workers = mesh.spawn("w", Worker)
    before = list(workers.where.call().get(T).values())
    with pytest.raises(ActorCrashError, match="exit code 3"):
        workers.slice(hosts=1).die.call_one().get(T)

    def answers():
        try:
            return list(workers.where.call().get(T).values())
        except SupervisionError:
            return None

    after = until(answers)
    assert after[1][0] == before[1][0]
    assert after[1][1] != before[1][1]
    assert failures == []


@pytest.mark.promise("S02")
def test_a_policy_replaces_a_lost_node_as_well_and_counts_it_once(local, failures):
    mesh = local(hosts=2, gpus_per_host=3, spares=1, restart=Restart(max=1))
    workers = mesh.spawn("w", Worker)
    before = list(workers.where.call().get(T).values())
    (spare,) = mesh.spares
    crash(workers, 1)

    def answers():
        try:
            return list(workers.where.call().get(T).values())
        except SupervisionError:
            return None

    after = until(answers)
    assert [one[:2] for one in after[:3]] == [one[:2] for one in before[:3]]
    assert {one[0] for one in after[3:]} == {spare}
    assert failures == []


def test_processes_stand_by_on_a_spare_host(local, failures):
    mesh = local(hosts=2, gpus_per_host=2, spares=1, spare_procs=1)
    workers = mesh.spawn("w", Worker)
    before = list(workers.where.call().get(T).values())
    for spares in mesh._procs.request.spares:
        spares.ready().get(T)
    standing = mesh._procs.request.spares[1]._procs.spawn("at", Worker)
    there = {one[1] for one in standing.where.call().get(T).values()}
    mesh.replace_node(crash(workers, 0).node_id).get(T)
    after = list(workers.where.call().get(T).values())
    assert {one[1] for one in after[:2]} == there
    assert [one[:2] for one in after[2:]] == [one[:2] for one in before[2:]]
    until(lambda: failures)


def test_the_end_of_the_mesh_is_the_end_of_its_hosts(local):
    mesh = local(hosts=2, spares=1)
    agents = list(mesh.spawn("w", Worker).agent.call().get(T).values())
    assert mesh.extent.labels == ["hosts", "gpus"]
    assert type(mesh.slice(hosts=0)) is ProcMesh
    mesh.stop().get(T)
    assert not any(map(alive, agents))
    with pytest.raises(SupervisionError, match="replace_node"):
        mesh.replace_node("hosts_0")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_program_of_the_documentation_runs_on_slurm(slurm, tmp_path):
    program = Path(__file__).resolve().parents[3] / "examples/replace_node.py"
    done = subprocess.run(
        [sys.executable, str(program), "--slurm"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = [line.split(" from ") for line in done.stdout.splitlines() if " from " in line]
    assert [step for step, _ in steps] == ["step 0: 0", "step 1: 8", "step 2: 32", "step 3: 72"]
    before, _, _, after = [nodes.split() for _, nodes in steps]
    assert f"lost {before[1]}" in done.stdout
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True, True]
    assert {*before, *after} == set(slurm.nodes)


@pytest.mark.parametrize(
    ("numbers", "what"), [((0,), "hosts"), ((1, 0), "gpus"), ((1, 1, -1), "spares")]
)
def test_numbers_that_cannot_be_are_refused(numbers, what):
    with pytest.raises(ValueError, match=f"ProcessMesh.local: the number of {what} is"):
        ProcessMesh.local(*numbers)
