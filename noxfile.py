"""Sessions: what each runs is in `ci/`. `./ci/nox -l` lists them."""

from __future__ import annotations

import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent))

from ci import checks, packages, suite

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
