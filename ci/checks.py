"""Sessions lint and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci import project

if TYPE_CHECKING:
    import nox

_SPELLED = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs", "ci", "port")
_TYPED = ("noxfile.py", "ci", "port", "runtime/monarch", "benchmarks")


def lint(session: nox.Session) -> None:
    session.install(*project.group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell", *_present(_SPELLED))
    workflows = sorted((project.ROOT / ".github/workflows").glob("*.yml"))
    if workflows:
        session.run("zizmor", "--offline", "--pedantic", ".github/workflows")
        session.run(
            "check-jsonschema",
            "--builtin-schema",
            "vendor.github-workflows",
            *(str(path.relative_to(project.ROOT)) for path in workflows),
        )


def types(session: nox.Session) -> None:
    session.install(*project.group("types"), *project.run_time_requirements())
    session.run("mypy", *_present(_TYPED))


def _present(paths: tuple[str, ...]) -> list[str]:
    return [path for path in paths if (project.ROOT / path).exists()]
