"""Many actors, few descriptors, and ends at any moment: nothing is left and nothing hangs."""

from __future__ import annotations

import contextlib
import random
import resource
import time
from pathlib import Path

import pytest

from monarch.actor import Actor, endpoint, this_host, this_proc
from tests.promises.actors import Mortal
from tests.promises.programs import Client

T = 120


class Small(Actor):
    @endpoint
    def number(self, value):
        return value


def threads():
    return sum(1 for _ in Path("/proc/self/task").iterdir())


@pytest.mark.promise("F04")
@pytest.mark.slow
@pytest.mark.parametrize("where", ["here", "procs"])
def test_ten_thousand_actors_start_and_stop_and_nothing_is_left(no_leaks, where):
    procs = this_proc() if where == "here" else this_host().spawn_procs(per_host={"n": 2})
    per_proc = 10_000 // len(procs)
    started = time.monotonic()
    meshes = [procs.spawn(f"small{i}", Small) for i in range(per_proc)]
    answers = [mesh.number.call(i) for i, mesh in enumerate(meshes)]
    for i, answer in enumerate(answers):
        assert set(answer.get(T).values()) == {i}
    assert threads() < 64
    stopped = time.monotonic()
    for ended in [mesh.stop() for mesh in meshes]:
        ended.get(T)
    if where == "procs":
        procs.stop().get(T)
    assert stopped - started < T
    assert time.monotonic() - stopped < T


@pytest.mark.promise("F04")
def test_processes_start_and_stop_again_and_again_and_nothing_is_left(no_leaks, cluster):
    for _ in range(3):
        mesh = cluster(4)
        assert len(mesh.spawn("small", Small).number.call(1).get(T)) == 4
        mesh.procs.stop().get(T)


@pytest.mark.promise("F04", "S01")
def test_what_a_killed_process_held_is_not_left(no_leaks, cluster):
    mesh = cluster(3)
    workers = mesh.spawn("workers", Mortal)
    workers.pid.call().get(T)
    mesh.kill(1)
    mesh.failures.wait(1, T)
    mesh.procs.respawn().get(T)
    assert len(workers.pid.call().get(T)) == 3
    mesh.procs.stop().get(T)


@contextlib.contextmanager
def few_descriptors(left):
    """No more than so many descriptors can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + left, hard))
    with contextlib.ExitStack() as stack:
        held = []
        with contextlib.suppress(OSError):
            while True:
                held.append(stack.enter_context(Path("/dev/null").open()))
        for file in held[-left:]:
            file.close()
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.promise("F01")
def test_out_of_descriptors_new_processes_fail_with_the_limit_and_the_others_go_on(cluster):
    mesh = cluster(2)
    workers = mesh.spawn("workers", Mortal)
    pids = workers.pid.call().get(T)
    with few_descriptors(8):
        with pytest.raises(OSError, match=r"descriptors ran out.*RLIMIT_NOFILE is \d+"):
            this_host().spawn_procs(per_host={"n": 64})
        assert list(workers.pid.call().get(T).values()) == list(pids.values())
    assert len(cluster(2).spawn("again", Mortal).pid.call().get(T)) == 2
    assert mesh.failures == []


END = """
import random
mesh, pids = start(2)
here = this_proc().spawn("here", Mortal)
def waits():
    try:
        mesh.hold_the_interpreter.call(600).get()
    except Exception:
        pass
threading.Thread(target=waits, daemon=True).start()
calls = [mesh.pid.call() for _ in range(50)]
mesh.pid.broadcast()
print("ready")
time.sleep({pause})
"""


@pytest.mark.promise("F06")
@pytest.mark.report("66")
@pytest.mark.slow
def test_a_program_ends_at_any_moment_with_work_in_flight():
    seed = time.time_ns()
    draw = random.Random(seed)  # noqa: S311 - moments, not secrets
    rounds, together = 100, 2
    for _ in range(rounds):
        programs = [Client(END.format(pause=draw.uniform(0, 0.02))) for _ in range(together)]
        for program in programs:
            assert program.line() == "ready", (program.end(), f"seed {seed}")
        for program in programs:
            status, out, err = program.end()
            assert (status, out, err) == (0, "", ""), f"seed {seed}"
        for program in programs:
            assert program.left(5) == []
