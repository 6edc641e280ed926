"""Processes of meshes: what a program sees of their ends, their output and their devices."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.monarch.proc.conftest import until
from tests.watching import alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

PROGRAM = """
import asyncio, os, signal, subprocess, sys, time
from monarch import actor as m

class Worker(m.Actor):
    @m.endpoint
    def pid(self):
        return os.getpid()

    @m.endpoint
    def say(self, text):
        print(text)

    @m.endpoint
    def sleeper(self):
        return subprocess.Popen(["sleep", "600"]).pid

    @m.endpoint
    def ignore(self):
        signal.signal(signal.SIGTERM, lambda *_: None)

    @m.endpoint
    def work(self):
        while True:
            time.sleep(1)

    @m.endpoint
    def environment(self, *names):
        return [os.environ.get(name) for name in names]

    @m.endpoint
    def beside(self):
        import beside_the_script
        return beside_the_script.NAME

    def __cleanup__(self, error):
        print("cleaned up", error)

procs = m.this_host().spawn_procs(per_host={{"gpus": {count}}}, name="trainer"{more})
workers = procs.spawn("workers", Worker)
{then}
"""

ENVIRONMENT = {name: value for name, value in os.environ.items() if "VISIBLE" not in name}
ENVIRONMENT["PYTHONPATH"] = os.pathsep.join(sys.path)


def run(then, count=2, more="", **options):
    program = PROGRAM.format(then=then, count=count, more=more)
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**ENVIRONMENT, **options.pop("env", {})},
        **options,
    )


def clean(done):
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.report("77")
def test_what_a_worker_has_started_is_gone_after_stop():
    then = (
        "pids = workers.sleeper.call().get().values()\nprocs.stop().get(timeout=30)\nprint(*pids)"
    )
    out = clean(run(then))
    pids = [int(word) for line in out.splitlines() if line[0] != "[" for word in line.split()]
    assert len(pids) == 2
    assert until(lambda: not any(map(alive, pids)), 1)


@pytest.mark.report("75")
def test_stop_returns_when_a_rank_has_died_already():
    then = (
        "m.unhandled_fault_hook = lambda failure: None\n"
        "pids = list(workers.pid.call().get().values())\n"
        "os.kill(pids[1], 9)\n"
        "procs.stop().get(timeout=30)\n"
        "print('pids', *pids)"
    )
    done = run(then, count=3)
    out = clean(done)
    pids = next(line.split()[1:] for line in out.splitlines() if line.startswith("pids"))
    assert not any(alive(int(pid)) for pid in pids)


@pytest.mark.report("84")
def test_a_worker_that_ignores_sigterm_is_killed_at_the_limit_and_named():
    then = (
        "pid = workers.pid.call_one().get()\n"
        "workers.ignore.call_one().get()\n"
        "workers.work.broadcast()\n"
        "begin = time.monotonic()\n"
        "procs.stop().get(timeout=30)\n"
        "print(pid, time.monotonic() - begin)"
    )
    done = run(then, count=1, env={"MONARCH_MESH_TERMINATE_TIMEOUT": "1s"})
    assert done.returncode == 0
    pid, seconds = done.stdout.split()
    assert 0.9 < float(seconds) < 10
    assert done.stderr == (
        f"monarch: [trainer 0] (pid {pid}) still ran 1 s after it was told to stop; it was killed\n"
    )


def test_actors_clean_up_before_their_process_ends():
    out = clean(run("workers.pid.call().get()\nprocs.stop().get(timeout=30)"))
    assert sorted(out.splitlines()) == [f"[trainer {rank}] cleaned up None" for rank in (0, 1)]


def test_actors_clean_up_when_the_program_ends():
    out = clean(run("workers.pid.call().get()"))
    assert sorted(out.splitlines()) == [f"[trainer {rank}] cleaned up None" for rank in (0, 1)]


@pytest.mark.promise("S04")
def test_when_the_program_ends_the_processes_started_last_end_first():
    then = (
        "more = m.this_host().spawn_procs(per_host={'gpus': 2}, name='later')\n"
        "others = more.spawn('others', Worker)\n"
        "workers.pid.call().get(), others.pid.call().get()"
    )
    ended = [line.split()[0] for line in clean(run(then)).splitlines()]
    assert ended == ["[later", "[later", "[trainer", "[trainer"]


def test_each_process_has_a_device_and_a_rank_of_its_own():
    then = (
        "names = ('CUDA_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES', 'ROCR_VISIBLE_DEVICES', 'RANK')\n"
        "print(*workers.environment.call(*names).get().values())\nprocs.stop().get()"
    )
    out = clean(run(then)).splitlines()
    assert "['0', '0', '0', '0'] ['1', '0', '1', '1']" in out


def test_a_module_beside_the_script_is_found(tmp_path):
    (tmp_path / "beside_the_script.py").write_text("NAME = 'found'\n")
    script = tmp_path / "script.py"
    script.write_text(
        PROGRAM.format(count=1, more="", then="print(workers.beside.call_one().get())")
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
        env=ENVIRONMENT,
    )
    assert "found" in clean(done).splitlines()


@pytest.mark.report("67")
def test_logging_options_bring_each_line_once():
    then = (
        "async def main():\n"
        "    await procs.logging_option(stream_to_client=True)\n"
        "    await workers.say.call('streamed')\n"
        "    await procs.logging_option(stream_to_client=True, aggregate_window_sec=0.3)\n"
        "    await workers.say.call('alike')\n"
        "    await procs.stop()\n"
        "asyncio.run(main())\n"
    )
    lines = clean(run(then, count=4)).splitlines()
    for text in ("streamed", "alike"):  # a line may come when the next option is set already
        counts = [
            int(line.split()[0].strip("[")) if "similar" in line else 1
            for line in lines
            if text in line
        ]
        assert sum(counts) == 4


def test_a_binding_for_each_process_is_applied():
    allowed = sorted(os.sched_getaffinity(0))
    bind = [{"cpus": str(allowed[0])}, {"physcpubind": str(allowed[-1])}]
    then = "print(*workers.environment.call('RANK').get().values())\nprocs.stop().get()"
    assert "['0'] ['1']" in clean(run(then, more=f", proc_bind={bind!r}")).splitlines()


def test_a_bootstrap_runs_before_the_actors_are_made():
    then = "print(*workers.environment.call('SET_EARLY').get().values())\nprocs.stop().get()"
    more = ", bootstrap=lambda: os.environ.__setitem__('SET_EARLY', 'yes')"
    assert "['yes'] ['yes']" in clean(run(then, more=more)).splitlines()


def test_a_bootstrap_command_runs_in_place_of_the_process():
    then = "print(*workers.environment.call('BY', 'RANK').get().values())\nprocs.stop().get()"
    code = "import os; os.environ['BY'] = 'command'; from monarch._proc.child import main; main()"
    more = (
        ", bootstrap_command=type('Command', (), {'program': sys.executable, "
        f"'args': ['-c', {code!r}], 'env': {{}}}})()"
    )
    assert "['command', '0'] ['command', '1']" in clean(run(then, more=more)).splitlines()
