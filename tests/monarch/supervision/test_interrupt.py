from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from monarch._supervision import interrupt


@pytest.fixture
def handler():
    killed = []
    made = interrupt.Interrupts(lambda: killed.append(True))
    made.killed = killed
    return made


def press(handler):
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, None)


@pytest.mark.promise("F05")
def test_the_first_raises_and_the_second_kills(handler):
    press(handler)
    assert handler.killed == []
    press(handler)
    assert handler.killed == [True]


def test_with_the_first_the_rest_is_told_to_hurry():
    told = []
    press(interrupt.Interrupts(lambda: None, lambda: told.append(True)))
    assert told == [True]


def test_one_that_comes_long_after_the_first_is_a_first_again(handler):
    press(handler)
    handler._last -= interrupt.AGAIN
    press(handler)
    assert handler.killed == []


def test_one_that_comes_while_the_first_unwinds_kills_however_late(handler):
    press(handler)
    handler._last -= 10 * interrupt.AGAIN
    try:
        signal.default_int_handler(signal.SIGINT, None)
    except KeyboardInterrupt:
        press(handler)
    assert handler.killed == [True]


def test_one_that_comes_while_the_program_ends_kills(handler):
    handler.ending = True
    press(handler)
    assert handler.killed == [True]


RUN = """
import os, signal, sys
sys.path.insert(0, {runtime!r})
from monarch._supervision import interrupt
{before}
installed = interrupt.install(lambda: os._exit(interrupt.STATUS))
print("installed", installed is not None, flush=True)

def main():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    finally:
        {last}

main()
"""


def run(before="", last="print('unwound', flush=True)", args=()):
    runtime = str(interrupt.__file__).rpartition("/monarch/")[0]
    code = RUN.format(runtime=runtime, before=before, last=last)
    return subprocess.run(
        [sys.executable, *args, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.promise("F05")
def test_once_unwinds_and_says_one_line_and_no_traceback():
    done = run()
    assert done.stdout == "installed True\nunwound\n"
    assert done.stderr.startswith("monarch: interrupted at <string>:")
    assert done.stderr.count("\n") == 1
    assert done.returncode == -signal.SIGINT


@pytest.mark.promise("F05")
def test_twice_kills_even_a_program_that_holds_on():
    done = run(last="os.kill(os.getpid(), signal.SIGINT); signal.pause()")
    assert done.returncode == interrupt.STATUS
    assert "Traceback" not in done.stderr


def test_a_handler_of_the_programs_own_is_left_alone():
    done = run(before="signal.signal(signal.SIGINT, lambda *_: sys.exit(9))")
    assert "installed False" in done.stdout
    assert done.returncode == 9


def test_a_prompt_keeps_its_own():
    done = run(before="sys.ps1 = '> '")
    assert "installed False" in done.stdout


def test_other_errors_keep_their_traceback():
    done = run(last="raise ValueError('beep')")
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("ValueError: beep\n")
    assert done.returncode == 1
