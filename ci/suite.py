"""Session tests: everything that needs no GPU, under one pytest run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci import project

if TYPE_CHECKING:
    import nox


def tests(session: nox.Session) -> None:
    session.install(*project.group("test"), *project.run_time_requirements())
    session.run("pytest", *session.posargs)
