"""Errors of `port`. The class decides the exit code of a command; the message says what,
where, what was wanted and what to do.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes shared by every command."""

    CLEAN = 0
    FINDINGS = 1
    USAGE = 2
    LIMIT = 3
    ENVIRONMENT = 5
    BUG = 70
    INTERRUPTED = 130


class PortError(Exception):
    """Root of the errors a user can act on."""

    exit_code = ExitCode.FINDINGS


class InputError(PortError):
    """Wrong usage, or an input that cannot be read."""

    exit_code = ExitCode.USAGE


class LimitError(PortError):
    """An input that goes past a stated limit of time, size or memory."""

    exit_code = ExitCode.LIMIT


class EnvironmentMissingError(PortError):
    """A toolchain, package or tool that this machine lacks."""

    exit_code = ExitCode.ENVIRONMENT
