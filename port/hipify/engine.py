"""A conversion in memory: read, gather what the project declares, convert file by file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from port.hipify import cache, outside, tables, tree
from port.hipify.cache import Cache
from port.hipify.findings import of_file
from port.hipify.manifest import COMPAT_HEADER, digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from port.hipify.context import Context
    from port.hipify.facts import Facts
    from port.hipify.findings import Finding
    from port.hipify.mapping import Mapping as Names
    from port.hipify.options import Options
    from port.hipify.tree import Input
    from port.hipify.unit import Unit

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
    tables: str
    """The release whose tables served: `release` itself, or the nearest one before it."""
    files: tuple[FileReport, ...]
    findings: tuple[Finding, ...]
    outputs: dict[str, tuple[bytes, int]]
    sources: dict[str, str]
    cache: Cache

    @property
    def ok(self) -> bool:
        """Whether no error was found."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def is_identity(self) -> bool:
        """Whether every input comes out as it is, and nothing else does."""
        hashes = {path: digest(data) for path, (data, _) in self.outputs.items()}
        return hashes == self.sources

    @property
    def counts(self) -> dict[str, int]:
        """Inputs by status."""
        counted = Counter(each.status for each in self.files)
        return {status: counted[status] for status in STATUSES}


def convert_tree(
    source: Path,
    options: Options,
    overrides: Mapping[str, str],
    out: Path | None = None,
    known: Cache | None = None,
) -> Conversion:
    """Convert all of `source`; results in `known` whose bytes are still in `out` are taken over."""
    listing = tree.read(source, options.extensions)
    work = _Work(source, options, overrides, listing.inputs, known or Cache(), out)
    reports = [FileReport(path, "failed") for path in listing.failed]
    outputs: dict[str, tuple[bytes, int]] = {}
    findings = list(listing.findings)
    carried: set[str] = set()
    for each in listing.inputs:
        if not each.is_code:
            outputs[each.path] = (each.data, each.mode)
            reports.append(FileReport(each.path, "copied"))
            findings += work.look_at(each)
            continue
        data, result = work.convert(each)
        outputs[each.path] = (data, each.mode)
        findings += result.findings
        carried |= result.carried
        reports.append(FileReport(each.path, result.status, result.replaced, result.lines_added))
    if carried:
        findings += work.add_compat(carried, outputs)
    reports.sort(key=lambda report: report.file)
    return Conversion(
        options.rocm,
        tables.nearest_release(options.rocm),
        tuple(reports),
        tuple(sorted(findings)),
        outputs,
        work.hashes,
        work.fresh,
    )


class _Work:
    """One conversion under way. What the cache answers is not computed, nor its tables loaded."""

    def __init__(
        self,
        source: Path,
        options: Options,
        overrides: Mapping[str, str],
        inputs: tuple[Input, ...],
        known: Cache,
        out: Path | None,
    ) -> None:
        self._root = source if source.is_dir() else source.parent
        self._options = options
        self._overrides = overrides
        # Headers at hand may change without a word, so that nothing holds from an earlier run.
        self._known = Cache() if options.headers else known
        self._out = out
        self._units: dict[str, Unit] = {}
        self._context: Context | None = None
        self._paths = [each.path for each in inputs]
        self.hashes = {each.path: digest(each.data) for each in inputs}
        self.fresh = Cache()
        self._facts = {each.path: self._facts_of(each) for each in inputs if each.is_code}
        found = outside.read(self._root, options.include_dirs, self._facts, self._facts_of)
        self._facts |= {each.path: self._facts_of(each) for each in found}
        self._digest = cache.context_digest(options, overrides, self._facts, self._paths)

    def convert(self, source: Input) -> tuple[bytes, cache.Entry]:
        """The output of one code file and its result."""
        key = cache.key(source.path, self.hashes[source.path])
        entry = self._known.results.get(key)
        data = self._earlier_output(source.path, entry)
        if data is None or entry is None:
            data, entry = self._compute(source)
        self.fresh.results[key] = entry
        return data, entry

    def look_at(self, source: Input) -> tuple[Finding, ...]:
        """What there is to say of a file that is copied."""
        key = cache.key(source.path, self.hashes[source.path])
        entry = self._known.results.get(key)
        if entry is None:
            from port.hipify import leftovers  # noqa: PLC0415 - see the class

            found = tuple(leftovers.check(source.path, source.data))
            entry = cache.Entry("", self.hashes[source.path], "copied", found, frozenset(), 0, 0)
        self.fresh.results[key] = entry
        return entry.findings

    def add_compat(self, carried: set[str], outputs: dict[str, tuple[bytes, int]]) -> list[Finding]:
        """Put the compat header for the names `carried` into `outputs`."""
        header = self._compat_header(frozenset(carried))
        if outputs.setdefault(COMPAT_HEADER, (header, 0o644))[0] == header:
            return []
        return [
            of_file(
                COMPAT_HEADER,
                "compat-clash",
                "the tree has a file of this name, where the compat header has to go",
                "convert the original sources, or rename the file",
            )
        ]

    def _names(self) -> Names:
        from port.hipify import installed, mapping  # noqa: PLC0415 - see the class

        headers = self._options.headers
        table = installed.table(Path(headers)) if headers else None
        types = sorted({name for facts in self._facts.values() for name in facts.enumerations})
        return mapping.Mapping(self._options.rocm, dict(self._overrides), table, types)

    def _compat_header(self, carried: frozenset[str]) -> bytes:
        key = cache.key(COMPAT_HEADER, f"{self._digest} {' '.join(sorted(carried))}")
        entry = self._known.results.get(key)
        data = self._earlier_output(COMPAT_HEADER, entry)
        if data is None or entry is None:
            from port.hipify import compat_header  # noqa: PLC0415 - see the class

            data = compat_header.render(carried, self._full_context().mapping)
            entry = cache.Entry(self._digest, digest(data), "generated", (), carried, 0, 0)
        self.fresh.results[key] = entry
        return data

    def _earlier_output(self, path: str, entry: cache.Entry | None) -> bytes | None:
        if entry is None or self._out is None or entry.context != self._digest:
            return None
        try:
            data = (self._out / path).read_bytes()
        except OSError:
            return None
        return data if digest(data) == entry.output else None

    def _facts_of(self, source: Input) -> Facts:
        key = cache.key(source.path, digest(source.data))
        found = self._known.facts.get(key)
        if found is None:
            from port.hipify import declarations  # noqa: PLC0415 - see the class

            unit = self._unit(source)
            found = declarations.gather(unit, tables.load_cuda())
            unit.forget()
        self.fresh.facts[key] = found
        if source.path not in self.hashes and source.path in self._units:
            self._units.pop(source.path).close()
        return found

    def _unit(self, source: Input) -> Unit:
        from port.hipify.unit import Unit  # noqa: PLC0415 - see the class

        if source.path not in self._units:
            self._units[source.path] = Unit(source.path, source.data)
        return self._units[source.path]

    def _compute(self, source: Input) -> tuple[bytes, cache.Entry]:
        from port.hipify import pipeline  # noqa: PLC0415 - see the class

        result = pipeline.convert(self._unit(source), self._full_context())
        self._units.pop(source.path).close()
        entry = cache.Entry(
            self._digest,
            digest(result.data),
            result.status,
            result.findings,
            result.carried,
            result.replaced,
            result.lines_added,
        )
        return result.data, entry

    def _full_context(self) -> Context:
        if self._context is None:
            from port.hipify import context, facts, includes  # noqa: PLC0415 - see above

            names = self._names()
            project = facts.Project.of(self._facts.values(), self._paths, self._options.defines)
            bare = context.Context(
                self._options, names, names.cuda, names.hip, project, str(self._root.resolve())
            )
            self._context = includes.with_graph(bare, self._facts)
        return self._context
