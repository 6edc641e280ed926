"""What processes print reaches the parent's output: whole lines, once, with name and rank."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.monarch.proc.test_processes import ask

SCRIPT = """
import os, sys
sys.path[:0] = {path!r}
from tests.monarch.proc.conftest import Procs
from tests.monarch.proc.test_processes import ask
p = Procs(body="tests.monarch.proc.bodies:serve")
ids = p.spawn({count})
{then}
p.spawner.close()
"""


def run(then, count=1, **options):
    program = SCRIPT.format(path=sys.path, count=count, then=then)
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.run([sys.executable, "-c", program], timeout=60, check=False, **options)


@pytest.mark.report("67")
def test_each_line_comes_once_with_name_and_rank():
    done = run("for i in ids: ask(p, i, \"print('line of', spec.rank)\")", count=4)
    assert sorted(done.stdout.splitlines()) == [f"[trainer {n}] line of {n}" for n in range(4)]
    assert done.stderr == ""


def test_standard_error_stays_standard_error():
    done = run("ask(p, ids[0], \"print('oh', file=sys.stderr)\")")
    assert (done.stdout, done.stderr) == ("", "[trainer 0] oh\n")


def test_an_unfinished_line_comes_at_the_end():
    done = run("ask(p, ids[0], \"print('no end', end='', flush=True)\")")
    assert done.stdout == "[trainer 0] no end\n"


def test_what_programs_of_a_process_print_comes_too():
    done = run("ask(p, ids[0], \"subprocess.run(['echo', 'hello']).returncode\")")
    assert done.stdout == "[trainer 0] hello\n"


def test_much_output_comes_whole_and_in_order():
    done = run("ask(p, ids[0], \"[print('x' * 100, n) for n in range(20000)] and 1\")")
    lines = done.stdout.splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == [str(n) for n in range(20000)]
    assert {len(line.partition("] ")[2].split()[0]) for line in lines} == {100}


def test_a_closed_pipe_stops_no_process():
    reading, writing = os.pipe()
    os.close(reading)
    then = (
        "for _ in range(3): assert ask(p, ids[0], \"print('x' * 1000000) or 5\") == 5\n"
        "print('went on', file=sys.stderr)"
    )
    done = run(then, stdout=writing)
    os.close(writing)
    assert "went on" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_stops_no_process_and_is_told():
    with Path("/dev/full").open("w") as full:
        # In one piece: what the runtime has to say comes from a thread of its own.
        said = "sys.stderr.write(str(ask(p, ids[0], \"print('x') or 5\")) + '\\n')"
        done = run(said, stdout=full)
    told = "monarch: lines of processes are lost: standard output takes none"
    assert sorted(done.stderr.splitlines()) == ["5", f"{told} (No space left on device)"]


def test_forwarded_lines_come_to_the_parent_and_not_to_its_output(procs, capfd):
    p = procs()
    first, second = p.spawn(2)
    p.spawner.forward([first], on=True)
    ask(p, first, "print('to me')")
    ask(p, second, "print('as ever')")
    for id_ in (first, second):
        p.links[id_].shutdown(1)
        p.report(id_)
    assert p.logs == [(first, 1, b"to me\n")]
    p.spawner.close()
    assert capfd.readouterr().out == "[trainer 1] as ever\n"


def test_a_parent_without_standard_output_can_have_processes():
    then = "os.write(2, str(ask(p, ids[0], '6 * 7')).encode())"
    closing = "import os; os.close(0); os.close(1)\n"
    program = closing + SCRIPT.format(path=sys.path, count=1, then=then)
    done = subprocess.run(
        [sys.executable, "-c", program], stderr=subprocess.PIPE, timeout=60, check=False
    )
    assert done.stderr == b"42"
