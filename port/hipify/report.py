"""How a conversion is told: lines for people, one JSON object, a unified diff."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from port.text import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.api import Outcome
    from port.hipify.engine import Conversion
    from port.hipify.findings import Finding


def as_json(conversion: Conversion, *, ok: bool) -> str:
    """The one object of `--json`."""
    return json.dumps(
        {
            "schema": 1,
            "ok": ok,
            "release": conversion.release,
            "tables": conversion.tables,
            "files": [asdict(each) for each in conversion.files],
            "findings": [finding_json(each) for each in conversion.findings],
            "counts": conversion.counts,
        }
    )


def finding_json(finding: Finding) -> dict[str, Any]:
    """One entry of `findings`."""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        "name": finding.name,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def lines(outcome: Outcome, *, diff: bool) -> Iterator[str]:
    """What people read: the findings by place, then counts. Notes are left out."""
    conversion = outcome.conversion
    if diff:
        yield from _diffs(outcome)
    for finding in conversion.findings:
        if finding.severity == "note":
            continue
        place = printable(finding.file)
        if finding.line:
            place += f":{finding.line}:{finding.column}"
        yield printable(
            f"{place}: {finding.severity}: {finding.name}: {finding.message} [{finding.rule}]"
        )
        yield f"    {printable(finding.remedy)}"
    counts = ", ".join(
        f"{number} {status}" for status, number in conversion.counts.items() if number
    )
    left = sum(finding.severity == "error" for finding in conversion.findings)
    warned = sum(finding.severity == "warning" for finding in conversion.findings)
    release = conversion.release
    if conversion.tables != release:
        release += f" (by the names of {conversion.tables}, the nearest release known)"
    yield (
        f"{counted(len(conversion.files), 'file')} for HIP {release}: {counts or 'none'}; "
        f"{counted(left, 'error')}, {counted(warned, 'warning')}"
    )


def _diffs(outcome: Outcome) -> Iterator[str]:
    """A unified diff from the source to the output of every converted file."""
    root = outcome.source if outcome.source.is_dir() else outcome.source.parent
    for each in outcome.conversion.files:
        if each.status == "converted":
            new, _ = outcome.conversion.outputs[each.file]
            yield unified_diff(each.file, (root / each.file).read_bytes(), new)


def unified_diff(path: str, old: bytes, new: bytes) -> str:
    """A unified diff of one file; bytes that are no UTF-8 are shown escaped."""
    import difflib  # noqa: PLC0415 - most runs show no diff

    before, after = (
        [f"{line}\n" for line in data.decode("utf-8", "backslashreplace").split("\n")]
        for data in (old, new)
    )
    name = printable(path)
    return "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")).rstrip("\n")
