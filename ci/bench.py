"""Session bench: the programs of benchmarks/, each with the requirements that it names itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nox

from ci import packages, project

if TYPE_CHECKING:
    from pathlib import Path


def programs(folder: Path) -> list[Path]:
    """Scripts that carry a PEP 723 block; modules without one are parts of them."""
    return [
        path
        for path in sorted(folder.rglob("*.py"))
        if "\n# /// script\n" in "\n" + path.read_text(encoding="utf-8")
    ]


def bench(session: nox.Session) -> None:
    """Run the benchmarks named ahead of any option, or all; what follows goes to each of them.

    Of all, those are passed over for which the machine lacks something (status 5).
    """
    words = session.posargs
    first = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    names, options = words[:first], words[first:]
    found = programs(project.ROOT / "benchmarks")
    unknown = set(names) - {path.stem for path in found}
    if unknown:
        known = ", ".join(path.stem for path in found)
        session.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {known}")
    for path in found:
        if names and path.stem not in names:
            continue
        wanted = nox.project.load_toml(path).get("dependencies", [])
        session.install(*project.run_time_requirements(), *wanted)
        ends = (0,) if names else (0, packages.ENVIRONMENT_MISSING)
        environment = {"PYTHONPATH": str(project.ROOT)}
        session.run("python", str(path), *options, env=environment, success_codes=ends)
