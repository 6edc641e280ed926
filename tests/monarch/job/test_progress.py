"""What a wait says: nothing at first, then one line a minute, or in place on a terminal."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from monarch._job import progress
from monarch._job.progress import Waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def wait(clock, stream, seconds, text="3 pending (Resources)"):
    with Waiting(stream) as waiting:
        while clock[0] < seconds:
            waiting.say(text)
            clock[0] += 0.5
    return stream.getvalue()


def test_a_short_wait_says_nothing(clock):
    assert wait(clock, io.StringIO(), 1.9) == ""


def test_elsewhere_than_on_a_terminal_it_is_a_line_a_minute(clock):
    lines = wait(clock, io.StringIO(), 150).splitlines()
    assert lines == [
        "waiting for 3 pending (Resources) (2 s)",
        "waiting for 3 pending (Resources) (1 min 02 s)",
        "waiting for 3 pending (Resources) (2 min 02 s)",
        "waited 2 min 30 s for 3 pending (Resources)",
    ]


def test_on_a_terminal_without_rich_a_line_changes_in_place(clock, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    text = wait(clock, Terminal(), 3.0)
    assert "\r\x1b[Kwaiting for 3 pending (Resources) (2 s)" in text
    assert text.count("\n") == 1
    assert text.endswith("\r\x1b[Kwaited 3 s for 3 pending (Resources)\n")


def test_on_a_terminal_with_rich_there_is_a_spinner(clock):
    text = wait(clock, Terminal(), 3.0, "1 of 4 [hosts] ready")
    assert "1 of 4 [hosts] ready" in text  # what looks like rich's markup is text
    assert text.endswith("waited 3 s for 1 of 4 [hosts] ready\n")


def test_a_wait_that_fails_does_not_say_that_it_is_over(clock):
    stream = io.StringIO()
    with pytest.raises(KeyError), Waiting(stream) as waiting:  # noqa: PT012 - as it fails
        clock[0] = 5.0
        waiting.say("hosts")
        raise KeyError
    assert stream.getvalue() == "waiting for hosts (5 s)\n"


def test_a_reader_that_is_gone_ends_no_wait(clock):
    stream = io.StringIO()
    stream.close()
    stream.isatty = lambda: False
    with Waiting(stream) as waiting:
        clock[0] = 5.0
        waiting.say("hosts")
