"""Programs that fork, or use `multiprocessing`, beside processes of ours."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing
import os
import sys

from monarch.actor import Actor, endpoint, this_host


class Adder(Actor):
    @endpoint
    def add(self, a, b):
        return a + b

    @endpoint
    def parent(self):
        return os.getppid()


def use(base):
    procs = this_host().spawn_procs(per_host={"workers": 2})
    adders = procs.spawn("adders", Adder)
    total = sum(adders.add.call(base, 1).get().values())
    zygote, other = set(adders.parent.call().get().values()), os.getpid()
    procs.stop().get(timeout=30)
    return total, zygote.pop(), other


if __name__ == "__main__":
    procs = this_host().spawn_procs(per_host={"workers": 2})
    adders = procs.spawn("adders", Adder)
    zygote = set(adders.parent.call().get().values())
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        answers = pool.map(use, [10, 20], chunksize=1)
        pool.close()
        pool.join()
    assert [total for total, _, _ in answers] == [22, 42], answers
    assert not zygote & {other for _, other, _ in answers}, (zygote, answers)
    assert sum(adders.add.call(1, 1).get().values()) == 4
    procs.stop().get(timeout=30)
    print("fine")
"""


@pytest.mark.promise("F05")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_have_processes_of_their_own(tmp_path, method):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-Wignore::DeprecationWarning", str(script), method],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


FORKS = """
import asyncio
import os
import sys

from monarch.actor import Actor, endpoint, this_host


class Plain(Actor):
    @endpoint
    def fork(self, how):
        return _fork(how)

    @endpoint
    def pid(self):
        return os.getpid()


class Async(Actor):
    @endpoint
    async def fork(self, how):
        await asyncio.sleep(0)
        return _fork(how)

    @endpoint
    def fork_beside(self, how):
        return _fork(how)

    @endpoint
    async def pid(self):
        return os.getpid()


def _fork(how):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if how == "raise":
        raise ValueError(how)
    if how == "exit":
        sys.exit(7)
    return "from the child"


procs = this_host().spawn_procs()
plain, later = procs.spawn("plain", Plain), procs.spawn("later", Async)
for actor in (plain, later):
    pid = actor.pid.call_one().get(timeout=30)
    for name in ("fork", "fork_beside") if actor is later else ("fork",):
        ways = ("return", "raise", "exit")
        print(*(getattr(actor, name).call_one(how).get(timeout=30) for how in ways))
    print(actor.pid.call_one().get(timeout=30) == pid)
"""


def test_a_child_that_an_endpoint_forks_and_that_comes_back_answers_for_nobody(tmp_path):
    program = tmp_path / "forks.py"
    program.write_text(FORKS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        # Python 3.12 and newer warn of a fork beside threads, which is what is tried here.
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONWARNINGS": "ignore::DeprecationWarning",
        },
    )
    assert (done.returncode, done.stdout) == (0, "0 1 7\nTrue\n0 1 7\n0 1 7\nTrue\n"), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 6
    assert all("forked in an endpoint, came back from it and was ended" in line for line in lines)
