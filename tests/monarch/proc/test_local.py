"""Processes with the runtime in them, started by this one: work, ends, logs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.monarch.proc import bootstraps
from tests.monarch.proc.conftest import kill, until
from tests.watching import alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


class Local:
    """Processes of this one, with what is reported of them."""

    def __init__(self):
        from monarch._actor.process import process  # noqa: PLC0415 - needs the built module
        from monarch._proc import local  # noqa: PLC0415 - as above

        self.here = process()
        self.local = local
        self.reports = {}
        self.ids = []
        local.listen(on_exit=lambda report: self.reports.__setitem__(report.proc, report))

    def spawn(self, count=1, bootstrap=bootstraps.obey, **fields):
        from monarch._actor.pickling import pack  # noqa: PLC0415 - as above
        from monarch._proc.spec import ProcSpec  # noqa: PLC0415 - as above

        ids = [int.from_bytes(os.urandom(7), "little") | 1 for _ in range(count)]
        extent = (("workers",), (count,))
        self.local.spawner().spawn(
            [
                ProcSpec(
                    id_,
                    rank,
                    extent,
                    fields.get("name", "trainer"),
                    bootstrap=pack(bootstrap),
                    owner=self.here.id,
                )
                for rank, id_ in enumerate(ids)
            ]
        )
        self.ids += ids
        return ids

    def ask(self, id_, text):
        return self.here.ask(id_, "eval", text)

    def pid(self, id_):
        assert until(lambda: self.local.pid(id_) is not None)
        return self.local.pid(id_)

    def report(self, id_):
        assert until(lambda: id_ in self.reports)
        return self.reports[id_]


@pytest.fixture
def here():
    made = Local()
    yield made
    made.local.kill(made.ids)
    for id_ in made.ids:
        made.report(id_)


def test_a_process_answers_over_its_link(here):
    first, second = here.spawn(2)
    assert here.ask(first, "os.getpid()") == here.pid(first)
    assert here.ask(second, "os.environ['RANK']") == "1"


def test_an_asynchronous_bootstrap_is_awaited(here):
    (id_,) = here.spawn(bootstrap=bootstraps.obey_async)
    assert here.ask(id_, "RAN") == ["async"]


def test_a_bootstrap_that_raises_is_the_reason_of_the_end(here):
    ids = here.spawn(2, bootstrap=bootstraps.refuse)
    causes = [here.report(id_).cause() for id_ in ids]
    assert causes == [f"exit code 70: RuntimeError: rank {n} has no licence" for n in range(2)]


def test_a_bootstrap_that_ends_the_process_is_a_death(here):
    (id_,) = here.spawn(bootstrap=bootstraps.leave)
    assert here.report(id_).code == 9


def test_a_process_that_is_told_to_stop_ends_by_itself(here):
    ids = here.spawn(3)
    for id_ in ids:
        here.ask(id_, "1")
    here.local.stop(ids, "enough", 30)
    reports = [here.report(id_) for id_ in ids]
    assert [(r.code, r.expected, r.forced) for r in reports] == [(0, True, False)] * 3
    assert not here.local.lives(ids[0])


@pytest.mark.report("75")
def test_stopping_returns_when_one_has_died_already(here):
    ids = here.spawn(3)
    here.ask(ids[0], "1")
    kill(here.pid(ids[1]), signal.SIGKILL)
    here.local.stop(ids, "enough", 30)
    start = time.monotonic()
    assert {here.report(id_).code for id_ in (ids[0], ids[2])} == {0}
    assert here.report(ids[1]).signal == 9
    assert time.monotonic() - start < 10


@pytest.mark.promise("F02")
def test_a_process_that_runs_out_of_memory_is_a_death_that_is_told(here):
    (id_,) = here.spawn()
    limit = "__import__('resource').setrlimit(9, (1 << 28, 1 << 28))"
    here.ask(id_, limit)
    here.here.tell(id_, "eval", "__import__('ctypes').memset(0, 1, 1 << 40)")
    report = here.report(id_)
    assert report.signal == signal.SIGSEGV
    assert report.expected is False


def test_lines_come_to_the_program_that_asked_for_them(here, capsys):
    from monarch._proc import logs  # noqa: PLC0415 - needs the built module

    ids = here.spawn(2)
    procs = [(id_, rank, "trainer", here.here.id) for rank, id_ in enumerate(ids)]
    logs.set_option(procs, stream_to_client=True)
    here.ask(ids[1], "say('hello')")
    here.ask(ids[0], "say('oh', error=True)")
    seen = ["", ""]

    def both():
        captured = capsys.readouterr()
        seen[0] += captured.out
        seen[1] += captured.err
        return seen == ["[trainer 1] hello\n", "[trainer 0] oh\n"]

    assert until(both, 10), seen
    logs.set_option(procs, stream_to_client=False)
    here.ask(ids[1], "say('not here')")
    here.local.stop(ids, "enough", 30)
    here.report(ids[1])
    assert capsys.readouterr().out == ""


@pytest.mark.report("67")
def test_lines_that_are_alike_come_once_for_each_window(here, capsys):
    from monarch._proc import logs  # noqa: PLC0415 - needs the built module

    ids = here.spawn(4)
    procs = [(id_, rank, "trainer", here.here.id) for rank, id_ in enumerate(ids)]
    logs.set_option(procs, stream_to_client=True, aggregate_window_sec=0.2)
    for id_ in ids:
        here.here.tell(id_, "eval", "say('ready')")
    for id_ in ids:
        here.ask(id_, "1")
    seen = [""]

    def counted():
        seen[0] += capsys.readouterr().out
        lines = seen[0].splitlines()
        counts = [int(line.split()[0].strip("[")) if "similar" in line else 1 for line in lines]
        return sum(counts) == 4 and len(lines) < 4

    assert until(counted, 10), seen


def test_a_window_without_streaming_is_refused():
    from monarch._proc import logs  # noqa: PLC0415 - needs the built module

    with pytest.raises(ValueError, match="needs stream_to_client=True"):
        logs.check_option(stream_to_client=False, aggregate_window_sec=1)
    with pytest.raises(ValueError, match="no time in seconds"):
        logs.check_option(stream_to_client=True, aggregate_window_sec=0)


def test_the_level_of_logging_is_set_in_the_processes(here):
    from monarch._proc import logs  # noqa: PLC0415 - needs the built module

    (id_,) = here.spawn()
    logs.set_option([(id_, 0, "trainer", here.here.id)], level=10)
    assert here.ask(id_, "__import__('logging').getLogger().level") == 10


PROGRAM = """
import sys
sys.path[:0] = {path!r}
from tests.monarch.proc import bootstraps
from tests.monarch.proc.test_local import Local
here = Local()
ids = here.spawn(2)
pids = [here.ask(id_, "os.getpid()") for id_ in ids]
{then}
sys.stdout.write(" ".join(map(str, [*pids, here.local.spawner().zygote])) + "\\n")
sys.stdout.flush()
"""


def run(then, **options):
    program = PROGRAM.format(path=sys.path, then=then)
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def test_a_program_that_ends_leaves_no_process_and_says_nothing():
    done = run("")
    assert (done.returncode, done.stderr) == (0, "")
    assert not any(alive(int(word)) for word in done.stdout.split())


def test_the_traceback_of_a_bootstrap_begins_with_the_users_frames():
    done = run("here.report(here.spawn(bootstrap=bootstraps.refuse)[0])")
    lines = done.stderr.splitlines()
    assert lines[:2] == [
        "[trainer 0] process trainer 0 ends",
        "[trainer 0] Traceback (most recent call last):",
    ]
    assert "in refuse" in lines[2]
    assert lines[-1] == "[trainer 0] RuntimeError: rank 0 has no licence"


def test_what_was_printed_last_is_seen_before_the_program_has_ended():
    done = run("here.ask(ids[1], \"say('bye')\")")
    assert "[trainer 1] bye" in done.stdout.splitlines()


def test_the_configuration_brings_lines_to_the_program():
    done = run(
        "here.ask(ids[0], \"say('one')\"); import time\nimport io; sys.stdout.flush(); print('-')",
        env={**os.environ, "MONARCH_ENABLE_LOG_FORWARDING": "1"},
    )
    assert done.stdout.count("[trainer 0] one") == 1


def test_lines_can_come_without_name_and_rank():
    done = run(
        "here.ask(ids[0], \"say('bare')\")", env={**os.environ, "MONARCH_PREFIX_WITH_RANK": "0"}
    )
    assert "bare" in done.stdout.splitlines()


def test_processes_can_write_to_the_programs_own_output():
    done = run(
        "here.ask(ids[0], \"say('direct', error=True)\")",
        env={**os.environ, "MONARCH_CAPTURE_OUTPUT": "0"},
    )
    assert done.stderr == "direct\n"
