"""Nothing outlives its parent, and nothing that is stopped goes on."""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.monarch.proc.conftest import kill, until
from tests.monarch.proc.test_processes import ask
from tests.watching import alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

FAMILY = """
import os, sys
sys.path[:0] = {path!r}
from tests.monarch.proc.conftest import Procs
from tests.monarch.proc.test_processes import ask
p = Procs(body="tests.monarch.proc.bodies:serve")
pids = []
for id_ in p.spawn(2):
    for text in ("os.getpid()", "plain_child()", "plain_child(new_session=True)", "daemon()"):
        pids.append(ask(p, id_, text))
print(*pids, flush=True)
{then}
"""


@pytest.mark.promise("S08")
@pytest.mark.parametrize(
    "then",
    [
        "os.kill(os.getpid(), 9)",
        "os._exit(3)",
        "os.abort()",
        "sys.stdin.read()",
        "os.kill(p.spawner.zygote, 19); os._exit(3)",
    ],
    ids=["killed", "left", "aborted", "terminated", "with its zygote stopped"],
)
def test_a_parents_death_takes_children_and_grandchildren_within_a_second(then):
    program = FAMILY.format(path=sys.path, then=then)
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with parent:
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 8
        if "stdin" in then:
            assert all(map(alive, pids))
            parent.terminate()
        parent.wait()
        assert until(lambda: not any(map(alive, pids)), 1), [p for p in pids if alive(p)]


@pytest.mark.report("77")
@pytest.mark.parametrize("how", ["killed", "ended", "stopped"])
def test_the_descendants_of_an_ended_process_are_gone(procs, how):
    p = procs()
    first, second = p.spawn(2)
    texts = ("plain_child()", "plain_child(new_session=True)", "daemon()")
    gone = [ask(p, first, text) for text in texts]
    kept = [ask(p, second, text) for text in texts]
    if how == "killed":
        kill(p.pid(first), signal.SIGKILL)
    elif how == "stopped":
        p.spawner.kill([first])
    else:
        p.links[first].shutdown(1)
    p.report(first)
    assert until(lambda: not any(map(alive, gone)), 1)
    assert all(map(alive, kept))


@pytest.mark.report("84")
def test_a_process_that_ignores_sigterm_is_killed_at_the_limit_and_named(procs, capfd):
    p = procs("deaf")
    (id_,) = p.spawn()
    assert p.hear(id_) == "deaf"
    start = time.monotonic()
    p.spawner.stop([id_], 0.5)
    report = p.report(id_)
    assert 0.4 < time.monotonic() - start < 5
    assert (report.signal, report.forced, report.expected) == (9, True, True)
    message = capfd.readouterr().err
    assert f"[trainer 0] (pid {report.pid}) still ran 0.5 s after it was told to stop" in message


def test_a_process_that_heeds_sigterm_gets_it_before_the_limit(procs):
    p = procs()
    (id_,) = p.spawn()
    ask(p, id_, "1")
    p.spawner.stop([id_], 1.0)
    report = p.report(id_)
    assert (report.signal, report.forced, report.expected) == (signal.SIGTERM, False, True)


def test_an_end_that_nobody_asked_for_is_not_expected(procs):
    p = procs()
    (id_,) = p.spawn()
    ask(p, id_, "1")
    kill(p.pid(id_), signal.SIGTERM)
    assert p.report(id_).expected is False


def test_a_stopped_process_can_be_killed(procs):
    p = procs("deaf")
    (id_,) = p.spawn()
    p.hear(id_)
    kill(p.pid(id_), signal.SIGSTOP)
    p.spawner.stop([id_], 0.2)
    assert p.report(id_).signal == 9


def test_a_stopped_zygote_keeps_nobody_waiting_and_gets_its_orders_later(procs, monkeypatch):
    p = procs()
    (id_,) = p.spawn()
    assert ask(p, id_, "1") == 1
    kill(p.spawner.zygote, signal.SIGSTOP)
    monkeypatch.setenv("MUCH", "x" * 4_000_000)  # more than its socket takes
    (held,) = p.spawn()
    assert p.spawner.held_up(held)
    assert "is stopped" in p.reports[held].reason
    p.spawner.kill([id_])
    kill(p.spawner.zygote, signal.SIGCONT)
    assert p.report(id_).signal == 9


def test_closing_kills_what_is_left(procs):
    p = procs("deaf")
    ids = p.spawn(2)
    for id_ in ids:
        p.hear(id_)
    pids = [p.pid(id_) for id_ in ids]
    zygote = p.spawner.zygote
    p.spawner.close()
    assert not any(map(alive, [*pids, zygote]))


def test_what_a_process_had_started_is_gone_when_the_zygote_dies(procs):
    p = procs()
    (id_,) = p.spawn()
    texts = ("os.getpid()", "plain_child()", "plain_child(new_session=True)", "daemon()")
    pids = [ask(p, id_, text) for text in texts]
    kill(p.spawner.zygote, signal.SIGKILL)
    p.report(id_)
    assert until(lambda: not any(map(alive, pids)), 1)


@pytest.mark.promise("F01")
def test_out_of_descriptors_is_named_and_those_there_go_on(procs):
    p = procs()
    (id_,) = p.spawn()
    ask(p, id_, "1")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, before[1]))
    try:
        with pytest.raises(OSError, match=r"cannot start 200 processes.*RLIMIT_NOFILE is 64"):
            p.spawn(200)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert ask(p, id_, "2") == 2
    assert p.spawner.live() == [id_]


@pytest.mark.promise("F01")
@pytest.mark.parametrize("lacks", ["interpreter", "secret"])
def test_a_zygote_that_cannot_start_leaves_no_descriptor_and_the_next_try_gets_all(
    procs, monkeypatch, tmp_path, lacks
):
    from monarch._proc import launch  # noqa: PLC0415 - needs the built module

    ahead = launch.take()  # one may have been started by now
    ahead.messages.close()
    os.waitpid(ahead.pid, 0)
    key = tmp_path / "key"
    p = procs(secret=lambda: os.open(key, os.O_RDONLY))

    def count():
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    if lacks == "interpreter":
        key.write_bytes(bytes(32))
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    counts = []
    for _ in range(2):  # what the spawner keeps for itself is there after the first
        with pytest.raises(OSError, match="No such file"):
            p.spawn(3)
        counts.append(count())
    assert counts[0] == counts[1]
    assert p.spawner.live() == []
    monkeypatch.undo()
    key.write_bytes(b"k" * 32)
    (id_,) = p.spawn()
    assert ask(p, id_, "__import__('monarch._link.secret')._link.secret.current().source") == (
        "the parent process"
    )


@pytest.mark.promise("F01")
def test_processes_the_zygote_has_no_descriptors_for_are_told_and_the_others_run(procs):
    p = procs(preload=["tests.monarch.proc.few_descriptors"])
    ids = p.spawn(12)
    assert until(lambda: p.spawner.wait(ids, 0.05) and set(ids) & set(p.reports), 30)
    p.spawner.wait(ids, 1)
    failed = [id_ for id_ in ids if id_ in p.reports]
    assert len(failed) < 12
    assert "RLIMIT_NOFILE" in p.reports[failed[0]].cause()
    others = [id_ for id_ in ids if id_ not in failed]
    assert [ask(p, id_, "spec.id") for id_ in others] == others


def test_starting_and_stopping_many_times_leaves_no_descriptor(procs):
    p = procs()
    (keeper,) = p.spawn()
    ask(p, keeper, "1")

    def count(pid):
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())

    gc.collect()  # what earlier tests of this worker have left to it is not counted with
    before = count("self"), count(p.spawner.zygote)
    for _ in range(20):
        ids = p.spawn(3)
        for id_ in ids:
            ask(p, id_, "1")
        p.spawner.kill(ids)
        for id_ in ids:
            p.report(id_)
            p.links.pop(id_).close()
    assert (count("self"), count(p.spawner.zygote)) == before


@pytest.fixture
def importing(procs, tmp_path):
    """`importing(count)`: processes whose zygote imports, for later, until `go` is there."""

    def make(count):
        (tmp_path / "long_to_import.py").write_text(
            "import os\nopen('begun', 'w').close()\nwhile not os.path.exists('go'):\n    pass\n"
        )
        p = procs(later=["long_to_import"], path=[str(tmp_path), *sys.path], cwd=str(tmp_path))
        ids = p.spawn(count)
        for id_ in ids:
            ask(p, id_, "1")
        assert until((tmp_path / "begun").exists)
        return p, ids

    yield make
    (tmp_path / "go").touch()


@pytest.mark.promise("S01")
def test_many_that_die_while_the_zygote_imports_for_later_are_all_told(importing, tmp_path):
    p, ids = importing(40)
    for id_ in ids:
        kill(p.pid(id_), signal.SIGKILL)
    assert until(lambda: p.spawner.receive() or len(p.reports) == len(ids))
    assert {p.reports[id_].signal for id_ in ids} == {signal.SIGKILL}
    (tmp_path / "go").touch()
    (another,) = p.spawn()
    assert ask(p, another, "1") == 1


def test_an_end_is_expected_from_when_it_was_asked_for_whatever_the_zygote_has_heard(importing):
    p, (told, died) = importing(2)
    kill(p.pid(died), signal.SIGKILL)
    assert select.select([p.spawner.fileno()], [], [], 30)[0]  # the report has come, unread
    p.spawner.stop([told, died], 30)
    p.links[told].close()
    assert p.report(told).expected is True
    assert p.report(died).expected is False
