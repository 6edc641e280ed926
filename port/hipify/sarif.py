"""Findings as SARIF 2.1.0, the format that code review tools read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from port.errors import InputError
from port.hipify.findings import MEANINGS
from port.hipify.rules import MEANINGS as RULE_MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from port.hipify.findings import Finding

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def document(findings: Iterable[Finding]) -> dict[str, Any]:
    """The SARIF log of `findings`, one run."""
    found = list(findings)
    meanings = {**MEANINGS, **RULE_MEANINGS}
    rules = sorted({finding.rule for finding in found})
    driver = {
        "name": "port.hipify",
        "rules": [{"id": rule, "shortDescription": {"text": meanings[rule]}} for rule in rules],
    }
    results = [_result(finding, rules.index(finding.rule)) for finding in found]
    run = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the source folder"}}},
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def write(findings: Iterable[Finding], path: Path) -> None:
    """Write the log to `path`.

    Raises:
        InputError: it cannot be written.

    """
    try:
        path.write_text(json.dumps(document(findings), indent=1) + "\n", "utf-8")
    except OSError as error:
        raise InputError(f"{path}: the SARIF file cannot be written: {error.strerror}") from None


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    physical: dict[str, Any] = {
        "artifactLocation": {
            "uri": quote(finding.file.encode("utf-8", "surrogateescape")),
            "uriBaseId": "SRCROOT",
        }
    }
    if finding.line:
        physical["region"] = {"startLine": finding.line, "startColumn": finding.column}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": f"{finding.name}: {finding.message}. {finding.remedy}"},
        "locations": [{"physicalLocation": physical}],
    }
