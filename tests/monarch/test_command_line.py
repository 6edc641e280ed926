"""The console script `monarch`: what it says of itself."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import monarch
from monarch.__main__ import group
from port.__main__ import group as port


def run(command, *words):
    return CliRunner().invoke(command, words)


def test_the_version_is_told_or_that_there_is_none():
    done = run(group, "--version")
    if monarch._build_facts() is None:
        assert done.exit_code == 1
        assert "a source tree that was not built" in done.output
    else:
        assert (done.exit_code, done.output) == (0, f"monarch {monarch.__version__}\n")


@pytest.mark.parametrize("command", [group, port])
def test_what_each_command_is_for_is_told_whole(command):
    told = run(command, "--help").output.partition("Commands:")[2]
    assert "..." not in told
    assert len(told.split("\n")) > len(command.list_commands(None))
