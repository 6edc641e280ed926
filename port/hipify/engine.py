"""A conversion from start to end: read, gather what the project declares, convert, write."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from port.hipify import compat, facts, includes, pipeline, tree
from port.hipify.context import Context, Options
from port.hipify.facts import Project
from port.hipify.mapping import Mapping
from port.hipify.output import digest
from port.hipify.unit import Unit

if TYPE_CHECKING:
    from pathlib import Path

    from port.hipify.findings import Finding

STATUSES = ("converted", "unchanged", "hip-already", "copied", "failed")


@dataclass(frozen=True, slots=True)
class FileReport:
    """One input: its path relative to the source, and exactly one of `STATUSES`."""

    file: str
    status: str
    replaced: int = 0
    lines_added: int = 0


@dataclass(frozen=True, slots=True)
class Conversion:
    """Everything a conversion came to.

    `outputs` holds each output's bytes and mode by path, `sources` the hash of each input.
    """

    release: str
    files: tuple[FileReport, ...]
    findings: tuple[Finding, ...]
    outputs: dict[str, tuple[bytes, int]]
    sources: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether no error was found."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        """Inputs by status."""
        counted = Counter(each.status for each in self.files)
        return {status: counted[status] for status in STATUSES}


def convert_tree(source: Path, options: Options, overrides: dict[str, str]) -> Conversion:
    """Convert all of `source` in memory."""
    listing = tree.read(source, options.extensions)
    mapping = Mapping(options.rocm, overrides)
    units = {each.path: Unit(each.path, each.data) for each in listing.inputs if each.is_code}
    root = source if source.is_dir() else source.parent
    context = _context(units, [each.path for each in listing.inputs], mapping, options, root)
    findings = list(listing.findings)
    reports = [FileReport(path, "failed") for path in listing.failed]
    outputs: dict[str, tuple[bytes, int]] = {}
    carried: set[str] = set()
    for each in listing.inputs:
        unit = units.pop(each.path, None)
        if unit is None:
            outputs[each.path] = (each.data, each.mode)
            reports.append(FileReport(each.path, "copied"))
            continue
        result = pipeline.convert(unit, context)
        outputs[each.path] = (result.data, each.mode)
        findings += result.findings
        carried |= result.carried
        reports.append(FileReport(each.path, result.status, result.replaced, result.lines_added))
    if carried:
        header = compat.render(carried, mapping)
        if outputs.setdefault(compat.HEADER, (header, 0o644))[0] != header:
            findings.append(
                tree.problem_finding(
                    compat.HEADER,
                    "compat-clash",
                    "the tree has a file of this name, where the compat header has to go",
                    "convert the original sources, or rename the file",
                )
            )
    reports.sort(key=lambda report: report.file)
    sources = {each.path: digest(each.data) for each in listing.inputs}
    return Conversion(mapping.asked, tuple(reports), tuple(sorted(findings)), outputs, sources)


def _context(
    units: dict[str, Unit], files: list[str], mapping: Mapping, options: Options, root: Path
) -> Context:
    gathered = {path: facts.gather(unit, mapping.cuda) for path, unit in units.items()}
    project = Project.of(gathered.values(), files, options.defines)
    context = Context(options, mapping, mapping.cuda, mapping.hip, project, str(root.resolve()))
    return includes.with_graph(context, gathered)
