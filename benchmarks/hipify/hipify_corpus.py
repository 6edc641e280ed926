# /// script
# dependencies = ["numpy", "unearth"]
# ///
"""Measure the converter and its peers on the corpus and write the table.

    nox -s bench -- hipify_corpus [--quick] [--tool NAME …]

Fetches the sources, the CUDA and HIP headers and, without --quick, the peers once into a cache.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import click
import corpus
import hipify_clang
import measure
import report
import toolchain
import tools
from compile import Judge, Outcome
from report import Column, Row

RELEASE = "6.4"
NAMES_CUDA = re.compile(
    rb"\b(?:cuda[A-Z]\w+|cu[A-Z]\w+|CU_\w+|CUDA_\w+|nvrtc\w+|curand\w+|nccl\w+|__global__"
    rb"|__device__|threadIdx)\b|<<<"
)


def row(
    project: corpus.Project, cache: Path, judge: Judge, peers: dict[str, Path], *, compile_: bool
) -> Row:
    """Everything about one project, by the tools in `peers`."""
    top = corpus.stage(project, cache)
    tree = corpus.unpack(project, cache)
    candidates = corpus.units(project, top, lambda data: NAMES_CUDA.search(data) is not None)
    units: list[str] = []
    if compile_:
        base = judge.check(project, tree, top, candidates, hip=None)
        units = [unit for unit, outcome in base.items() if outcome.ok]
    files = sum(path.is_file() and path.suffix in tools.SUFFIXES for path in top.rglob("*"))
    made = Row(project.name, files, measure.names_in(top), len(units), len(candidates))
    runs = {}
    if "port.hipify" in peers:
        runs["port.hipify"] = tools.ours(top, cache / "out" / "port" / project.name, RELEASE)
    if "torch" in peers:
        runs["torch"] = tools.torch(
            top, cache / "out" / "torch" / project.name, peers["torch"], project.include
        )
    given = [
        name
        for name in corpus.with_includes(project, top, units if compile_ else candidates)
        if NAMES_CUDA.search((top / name).read_bytes())
    ]
    if "hipify-perl" in peers:
        out = cache / "out" / "perl" / project.name
        runs["hipify-perl"] = tools.perl(top, out, peers["hipify-perl"], given)
    if "hipify-clang" in peers and judge.toolchain is not None:
        out = cache / "out" / "clang" / project.name
        runs["hipify-clang"] = hipify_clang.convert(
            project, tree, top, out, peers["hipify-clang"], judge.toolchain
        )
    for name, run in runs.items():
        counts = measure.count(top, run, RELEASE)
        # torch's converter rewrites USE_CUDA to USE_ROCM, which its builder then defines.
        extra = ("USE_ROCM=1",) if name == "torch" else ()
        built = replace(project, define=(*project.define, *extra))
        outcomes = _compiled(judge, built, tree, run, units)
        made.columns[name] = Column(
            counts.residue,
            counts.unreported,
            counts.undeclared,
            sum(outcome.ok for outcome in outcomes.values()),
            round(run.seconds, 2),
            run.status,
            run.second_run,
            measure.names_in(top, given) if name == "hipify-perl" else None,
            {unit: outcome.error for unit, outcome in outcomes.items() if not outcome.ok},
        )
    return made


def _compiled(
    judge: Judge, project: corpus.Project, tree: Path, run: tools.Run, units: list[str]
) -> dict[str, Outcome]:
    if not run.outputs:
        return {unit: Outcome(ok=False, error="no output") for unit in units}
    names = {unit: run.outputs.get(unit, run.top / unit) for unit in units}
    present = {unit: path for unit, path in names.items() if path.is_file()}
    asked = [str(path.relative_to(run.top)) for path in present.values()]
    kernels = frozenset(
        str(p.relative_to(run.top))
        for u, p in present.items()
        if u.endswith(corpus.KERNEL_SUFFIXES)
    )
    said = judge.check(project, tree, run.top, asked, hip=RELEASE, kernels=kernels)
    missing = {u: Outcome(ok=False, error="no output") for u in names if u not in present}
    return {u: said[str(p.relative_to(run.top))] for u, p in present.items()} | missing


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache/hipify-bench"))
@click.option("--quick", is_flag=True, help="Only the small projects, and no peers.")
@click.option("--only", multiple=True, help="Only these projects.")
@click.option("--no-compile", is_flag=True, help="Counts alone: no compiler and no headers needed.")
@click.option(
    "--tool",
    "chosen",
    type=click.Choice(report.TOOLS),
    multiple=True,
    help="Only these; hipify-perl takes hours, hipify-clang needs root.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    help="Rows as JSON; other projects and tools in it stay, so that a run can come in parts.",
)
@click.option("--jobs", default=2, show_default=True, help="Compilers at a time.")
@click.option("--output", type=click.Path(path_type=Path), help="Markdown table.")
def main(
    cache: Path,
    *,
    quick: bool,
    only: tuple[str, ...],
    no_compile: bool,
    chosen: tuple[str, ...],
    json_file: Path | None,
    jobs: int,
    output: Path | None,
) -> None:
    """Convert every project of the corpus with each tool and count."""
    cache = cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    projects = [
        project
        for project in corpus.load()
        if (project.quick or not quick) and (not only or project.name in only)
    ]
    asked = chosen or (report.TOOLS[:1] if quick else report.TOOLS)
    peers = toolchain.peers(cache, asked)
    if "hipify-clang" in asked and not no_compile:
        peers["hipify-clang"] = hipify_clang.bring(cache)
    headers = None if no_compile else toolchain.bring(cache, whole_corpus=not quick)
    judge = Judge(headers, cache, jobs=jobs)
    found = report.load(json_file) if json_file is not None and json_file.exists() else {}
    for project in projects:
        made = row(project, cache, judge, peers, compile_=not no_compile)
        found[project.name] = report.joined(found.get(project.name), made)
        click.echo(report.line(made), err=True)
        if json_file is not None:
            held = [asdict(each) for each in found.values()]
            json_file.write_text(json.dumps(held, indent=1) + "\n")
    order = [project.name for project in corpus.load()]
    rows = sorted(found.values(), key=lambda row: order.index(row.project))
    text = report.table(rows)
    if output is not None:
        output.write_text(text)
    click.echo(text)
    ours = (made.columns.get("port.hipify") for made in rows)
    if any(column is not None and column.unreported for column in ours):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
