"""A fork of a program that has actors: it can call them, and leaves its parent's links alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

HEAD = """
import gc, os, sys, threading
from monarch.actor import Actor, endpoint, this_host

class Adds(Actor):
    @endpoint
    def add(self, value: int) -> int:
        return value + 1

adds = this_host().spawn_procs(per_host={"gpus": 2}).spawn("adds", Adds)
print(list(adds.add.call(1).get(timeout=30).values()), flush=True)
"""


_OUTLIVES = """
import stat, time
from monarch.actor import ActorCrashError

def is_socket(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:  # that by which the folder was read
        return False

program = os.getpid()
told, tells = os.pipe()
if os.fork():
    os.read(told, 1)
    os._exit(0)
print([number for number in map(int, os.listdir("/proc/self/fd")) if is_socket(number)], flush=True)
if used:
    print(list(adds.add.call(2).get(timeout=30).values()), flush=True)
os.write(tells, b"1")
while os.getppid() == program:
    time.sleep(0.001)
lost = 0
while lost < 2:  # its processes have a second to end in, and may answer until then
    try:
        adds.add.call(2).get(timeout=20)
    except ActorCrashError as error:
        print(error.failure.message, flush=True)
        lost += 1
own = this_host().spawn_procs(per_host={"gpus": 1}).spawn("own", Adds)
print(own.add.call_one(3).get(timeout=30), flush=True)
"""


def run(tmp_path: Path, body: str) -> str:
    script = tmp_path / "program.py"
    script.write_text(HEAD + body, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", str(script)],
        capture_output=True,
        text=True,
        timeout=90,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "runtime"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.promise("F05")
def test_a_fork_calls_actors_by_links_of_its_own_and_is_refused_the_rest(tmp_path):
    told = run(
        tmp_path,
        """
from monarch.actor import this_proc

earlier = adds.add.call(5)
inside = this_proc().spawn("inside", Adds)
print(inside.add.call_one(1).get(timeout=30), flush=True)
child = os.fork()
if child == 0:
    print(list(adds.add.call(2).get(timeout=30).values()), flush=True)
    print(adds.slice(gpus=0).add.call_one(6).get(timeout=30), flush=True)
    for use in (lambda: earlier.get(timeout=5), lambda: inside.add.call_one(2)):
        try:
            print("got", use(), flush=True)
        except RuntimeError as error:
            print(type(error).__name__, str(error)[:45], flush=True)
    own = this_host().spawn_procs(per_host={"gpus": 1}).spawn("own", Adds)
    print(own.add.call_one(7).get(timeout=30), flush=True)
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(list(earlier.get(timeout=30).values()), list(adds.add.call(3).get(timeout=30).values()))
print(inside.add.call_one(2).get(timeout=30))
""",
    )
    refused = ["StoppedError this process is a fork of one that uses monar"] * 2
    expected = ["[2, 2]", "2", "[3, 3]", "7", *refused, "8", "0", "[6, 6] [4, 4]", "3"]
    assert told.splitlines() == expected


@pytest.mark.promise("F05")
@pytest.mark.parametrize("used", [False, True])
def test_a_fork_that_outlives_its_program_is_told_so_and_holds_none_of_its_links(tmp_path, used):
    told = run(tmp_path, f"used = {used}" + _OUTLIVES)
    lost = "the program that this process was forked from has ended, and it with that"
    before = ["[3, 3]"] if used else []
    assert told.splitlines() == ["[2, 2]", "[]", *before, lost, lost, "4"]


@pytest.mark.promise("F05")
def test_forks_of_a_busy_program_forget_its_futures_and_end(tmp_path):
    told = run(
        tmp_path,
        """
going = True

def keep_busy() -> None:
    while going:
        adds.add.call(1).get(timeout=30)

threads = [threading.Thread(target=keep_busy) for _ in range(3)]
for thread in threads:
    thread.start()
ended = []
for _ in range(60):
    held = [adds.add.call(value) for value in range(20)]
    child = os.fork()
    if child == 0:
        del held
        gc.collect()
        os._exit(7)
    ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    del held
going = False
for thread in threads:
    thread.join()
print(set(ended))
""",
    )
    assert told.splitlines() == ["[2, 2]", "{7}"]
