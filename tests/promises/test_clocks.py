"""The time of day may jump: nothing that waits, beats or counts goes by it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from ci.rigs import clock, namespaces
from tests.promises.programs import ENVIRONMENT, HEAD, ROOT

DAY = 24 * 3600
# Where the time of day is read: to be shown to people, as that of a failure or of a snapshot.
SHOWN = {
    "_actor/hooks.py",
    "_mesh/snapshots.py",
    "_proc/hosts.py",
    "_proc/spawner.py",
    "_proc/zygote.py",
    "_supervision/describe.py",
}


def of_day(tree):
    """Whether a module reads the time of day: `time.time()`, `from time import time`, datetime."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            if {alias.name for alias in node.names} & {"time", "time_ns", "localtime", "ctime"}:
                return True
        elif isinstance(node, ast.Attribute):
            whole = ast.unparse(node) in {"time.time", "time.time_ns"}
            if whole or node.attr in {"utcnow", "today"}:
                return True
    return False


@pytest.mark.promise("N04")
def test_the_time_of_day_is_read_only_to_be_shown():
    package = ROOT / "runtime/monarch"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if of_day(ast.parse(path.read_bytes(), str(path)))
    }
    assert found == SHOWN


@pytest.mark.promise("N04")
def test_the_core_knows_no_time_of_day():
    word = re.compile(r"system_clock|CLOCK_REALTIME|gettimeofday|\btime\(|high_resolution_clock")
    for folder in ("core", "bindings"):
        for path in (ROOT / "runtime" / folder).rglob("*.[ch]pp"):
            lines = path.read_text(encoding="utf-8").splitlines()
            code = [line.partition("//")[0] for line in lines]
            assert not [line for line in code if word.search(line)], path


@pytest.fixture
def jumping(tmp_path):
    if clock.missing():
        pytest.skip(clock.missing())
    return clock.Clock(tmp_path)


PROGRAM = """
from monarch.supervision import Restart
monarch.actor.unhandled_fault_hook = lambda failure: print("failed", failure, flush=True)
mesh, pids = start(2)
restarting = this_host().spawn_procs(per_host={"gpus": 1}, restart=Restart(max=2, within=600))
again = restarting.spawn("again", Mortal)
def waits(seconds):
    began = time.monotonic()
    try:
        mesh.hold_the_interpreter.call(0.0).get(seconds)
        asked = mesh.slice(gpus=0).hold_the_interpreter.call_one(seconds + 1)
        asked.get(seconds)
    except TimeoutError:
        asked.get(60)
        return time.monotonic() - began
def there():
    while True:
        try:
            return again.pid.call_one().get(30)
        except monarch.actor.SupervisionError:
            time.sleep(0.01)
print("ready", flush=True)
for line in sys.stdin:
    assert list(mesh.pid.call().get(30).values()) == pids
    assert waits(1.0) > 1.0
    if line == "kill\\n":
        pid = there()
        os.kill(pid, signal.SIGKILL)
        while there() == pid:
            time.sleep(0.01)
    print("time", time.time(), flush=True)
"""


@pytest.mark.promise("N04")
def test_a_clock_that_jumps_a_day_ends_no_wait_and_nobody_counts_as_dead(jumping):
    program = subprocess.Popen(
        [sys.executable, "-c", HEAD + PROGRAM],
        env={**ENVIRONMENT, **jumping.variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with program:
        assert program.stdout.readline() == "ready\n"
        times = []
        for shift, order in ((0, "kill"), (DAY, "wait"), (-DAY, "kill"), (DAY, "wait")):
            jumping.jump(shift)
            program.stdin.write(f"{order}\n")
            program.stdin.flush()
            word, told = program.stdout.readline().split()
            assert word == "time"
            times.append(float(told))
        program.stdin.close()
        assert program.stdout.read() == ""
    assert program.returncode == 0
    assert times[1] - times[0] > DAY, "the clock did not jump: the test shows nothing"
    assert times[2] - times[1] < -DAY


HOSTS = """
from monarch.actor import attach_to_workers
from tests.monarch.hosts.rig import Who
monarch.actor.unhandled_fault_hook = lambda failure: print("failed", failure, flush=True)
hosts = attach_to_workers(ca="trust_all_connections", workers=[sys.argv[1]])
who = hosts.spawn_procs().spawn("who", Who)
for line in sys.stdin:
    new = hosts.spawn_procs().spawn("new", Who)  # with links, and certificates, of its own
    assert who.ask.call_one(new).get(60) == new.pid.call_one().get(60)
    print("asked", flush=True)
"""


@pytest.mark.promise("N04")
def test_hosts_whose_clocks_jump_apart_keep_their_links_and_make_new_ones(jumping, tmp_path):
    if namespaces.missing():
        pytest.skip(namespaces.missing())
    from tests.monarch.hosts.rig import Hosts  # noqa: PLC0415 - it needs namespaces

    rig = Hosts(namespaces.Network(2), tmp_path)
    try:
        _served, address = rig.serve(rig.others[0], variables=jumping.variables)
        command = ["-c", HEAD + HOSTS, address]
        program = rig.start(rig.here, command, stdin=subprocess.PIPE, stderr=None)
        for shift in (0, DAY, -DAY, DAY, 0):
            jumping.jump(shift)
            program.stdin.write("go\n")
            program.stdin.flush()
            assert program.stdout.readline() == "asked\n"
        assert program.communicate(timeout=60)[0] == ""
        assert program.returncode == 0
    finally:
        rig.close()
