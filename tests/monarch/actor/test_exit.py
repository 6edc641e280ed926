"""The end of a program: whatever its actors do, it exits cleanly and at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

HEAD = """
import asyncio, threading, time
from tests.monarch.actor.rig import process, spawn, start_child
from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch._actor.process import shutdown_context

class Plain(Actor):
    @endpoint
    def echo(self, value): return value
    @endpoint
    def spin(self):
        while True: pass
    @endpoint
    def sleep(self): time.sleep(60)

class Loop(Actor):
    @endpoint
    async def echo(self, value): return value
    @endpoint
    async def never(self): await asyncio.Event().wait()
"""

_CALLERS = """
begun = threading.Semaphore(0)
from monarch.actor import this_host
a = this_host().spawn_procs().spawn("plain", Plain)
async def forever():
    while True: await a.echo.call_one(1)
def use():
    while True:
        begun.release()
        {}
print(a.echo.call_one(1).get())
for _ in range(3): threading.Thread(target=use, daemon=True).start()
for _ in range(3): begun.acquire()
"""

ENDS = {
    "called once": "print(spawn(Plain).echo.call_one(1).get())",
    "async called once": "print(spawn(Loop).echo.call_one(1).get())",
    "in a child": "print(spawn(Plain, procs=[start_child()]).echo.call_one(1).get())",
    "calls in flight": "p = spawn(Plain, procs=[start_child()]); "
    "fs = [p.echo.call_one(1) for _ in range(1000)]; print(fs[0].get())",
    "a coroutine waits": "a = spawn(Loop); f = a.never.call_one(); "
    "print(spawn(Loop).echo.call_one(1).get())",
    "an endpoint spins": "a = spawn(Plain); f = a.spin.call_one(); "
    "print(spawn(Plain).echo.call_one(1).get())",
    "an endpoint sleeps": "a = spawn(Plain); f = a.sleep.call_one(); "
    "print(spawn(Plain).echo.call_one(1).get())",
    "a thread waits": "a = spawn(Loop); f = a.never.call_one(); "
    "threading.Thread(target=lambda: f.exception(), daemon=True).start(); "
    "print(spawn(Loop).echo.call_one(1).get())",
    "threads that call actors elsewhere": _CALLERS.format("f = a.echo.call_one(1).get()"),
    "threads that wait for actors elsewhere": _CALLERS.format("f = a.sleep.call_one().get()"),
    "threads with loops": _CALLERS.format("asyncio.run(forever())"),
    "a constructor runs elsewhere": "from monarch.actor import this_host\n"
    "class Slow(Actor):\n    def __init__(self): time.sleep(60)\n"
    "this_host().spawn_procs().spawn('slow', Slow); print(1)",
    "shut down twice": "print(spawn(Plain).echo.call_one(1).get()); "
    "shutdown_context().get(); shutdown_context().get()",
    "shut down within a time": "from monarch.actor import this_host\n"
    "p = this_host().spawn_procs(); print(p.spawn('a', Plain).echo.call_one(1).get())\n"
    "for bad in (-1.0, float('nan'), float('inf'), 2.0**64, 1e300):\n"
    "    try: shutdown_context(host_timeout=bad)\n"
    "    except ValueError: continue\n"
    "    print('taken', bad)\n"
    "assert p.spawn('b', Plain).echo.call_one(2).get() == 2\n"
    "shutdown_context(host_timeout=5.0).get()",
    "nothing but made": "process(); print(1)",
}


def run(body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", HEAD + body],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'runtime'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        check=False,
    )


@pytest.mark.report("66")
@pytest.mark.parametrize("name", ENDS)
def test_a_program_ends_cleanly_with(name):
    for _ in range(5):
        done = run(ENDS[name])
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_the_exit_status_of_a_program_that_raises_is_its_own():
    done = run("spawn(Plain).echo.call_one(1).get(); raise SystemExit(4)")
    assert (done.returncode, done.stderr) == (4, "")


def test_a_forked_child_begins_anew():
    body = (
        "import os; spawn(Plain).echo.call_one(1).get(); pid = os.fork()\n"
        "if pid == 0: print(spawn(Plain).echo.call_one(2).get(), flush=True); os._exit(0)\n"
        "os.waitpid(pid, 0); print(spawn(Plain).echo.call_one(3).get())"
    )
    done = run(body)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n3\n", "")
