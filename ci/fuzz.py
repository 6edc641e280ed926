"""Session fuzz: the libFuzzer programs of the core, then the Python fuzzers of tests/fuzz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci import cpp, options, project

if TYPE_CHECKING:
    from pathlib import Path

    import nox

_DEFAULT_SECONDS = 60
_FOUND = project.CACHE / "fuzz"


def fuzz(session: nox.Session) -> None:
    """Run every fuzzer for its share of `--seconds`.

    Inputs that lead somewhere new are kept under .cache/fuzz for the next run; one that breaks
    something is written there as well, and its name ends the output.
    """
    budget = options.budget(session, _DEFAULT_SECONDS)
    cpp.build(session, cpp.FUZZERS)
    scripts = sorted((project.ROOT / "tests/fuzz").glob("fuzz_*.py"))
    session.install(*project.group("fuzz"), *project.run_time_requirements())
    programs = [[str(path)] for path in cpp.fuzzers()]
    programs += [["python", str(path)] for path in scripts]
    for program in programs:
        corpus = _corpus(program[-1])
        session.run(
            *program,
            f"-max_total_time={budget.share(len(programs))}",
            "-timeout=10",
            "-rss_limit_mb=2048",
            f"-artifact_prefix={corpus.parent}/",
            str(corpus),
            *_seeds(program[-1]),
            env={"PYTHONPATH": f"{project.ROOT}:{project.ROOT / 'runtime'}"},
        )


def _name(program: str) -> str:
    return program.rpartition("/")[2].removesuffix(".py")


def _corpus(program: str) -> Path:
    folder = _FOUND / _name(program) / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _seeds(program: str) -> list[str]:
    """The committed inputs of a fuzzer, where it has any: tests/fuzz/corpus/NAME."""
    folder = project.ROOT / "tests/fuzz/corpus" / _name(program)
    return [str(folder)] if folder.is_dir() else []
