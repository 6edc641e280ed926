"""Runs the command in this process, as the shell would see it; what its reports find."""

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


def failing(report):
    """Codes of the checks that fail."""
    return {check.code for check in report.checks if not check.ok}
