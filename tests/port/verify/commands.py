"""Runs the command in this process, as the shell would see it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from port.cli import run as run_command
from port.verify.command import command


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


def run(*arguments):
    """Status, standard output and standard error of `python -m port.verify *arguments`."""
    runner = CliRunner()
    with runner.isolation() as (out, err, _), pytest.raises(SystemExit) as end:
        run_command(command, list(arguments))
    return Done(int(end.value.code), out.getvalue().decode(), err.getvalue().decode())
