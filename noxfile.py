"""Sessions: what each runs is in `ci/`. `./ci/nox -l` lists them."""

from __future__ import annotations

import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent))

from ci import bench as benchmarks
from ci import checks, packages, suite
from ci import cpp as core
from ci import fuzz as fuzzing

nox.needs_version = ">=2026.4"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting, lint and spelling of all sources; the workflow files."""
    packages.ensure("lint")
    checks.lint(session)


@nox.session
def types(session: nox.Session) -> None:
    """Static types of all Python packages, strictly."""
    checks.types(session)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests that need no GPU; arguments after -- go to pytest."""
    packages.ensure("tests")
    suite.tests(session)


@nox.session
def cpp(session: nox.Session) -> None:
    """The C++ tests of the core alone."""
    packages.ensure("cpp")
    core.test(session, core.TESTS)


@nox.session
def sanitize(session: nox.Session) -> None:
    """The C++ tests under address, undefined-behaviour and thread sanitizers."""
    packages.ensure("sanitize")
    for variant in core.SANITIZED:
        core.test(session, variant)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Fuzzers of every parser; -- --seconds N is the time for all of them."""
    packages.ensure("fuzz")
    fuzzing.fuzz(session)


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks; -- NAME… --quick picks some and shortens them."""
    packages.ensure("bench")
    benchmarks.bench(session)
