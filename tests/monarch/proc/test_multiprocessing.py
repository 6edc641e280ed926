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
