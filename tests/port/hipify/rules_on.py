"""Runs the semantic rules alone on a snippet."""

from __future__ import annotations

from dataclasses import dataclass

from port.hipify import facts, rewrite
from port.hipify.context import Context
from port.hipify.findings import Finding
from port.hipify.mapping import Mapping
from port.hipify.options import Options
from port.hipify.rules import RULES
from port.hipify.unit import Unit


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the rules said and the text with their edits alone."""

    findings: list[Finding]
    text: str

    def at(self, line: int) -> list[str]:
        """Rule ids at a line."""
        return [finding.rule for finding in self.findings if finding.line == line]

    def places(self, rule: str) -> list[tuple[int, int, str]]:
        """(line, column, name) of each finding of one rule."""
        return [(f.line, f.column, f.name) for f in self.findings if f.rule == rule]


def rules_on(text: str, path: str = "a.cu", rocm: str = "6.4") -> Outcome:
    """All rules on one file that is a project of its own."""
    unit = Unit(path, text.encode())
    mapping = Mapping(rocm)
    project = facts.Project()
    context = Context(Options(rocm=rocm), mapping, mapping.cuda, mapping.hip, project)
    findings = []
    edits = []
    for rule in RULES:
        for made in rule(unit, context):
            if isinstance(made, Finding):
                findings.append(made)
            else:
                edits.append(made)
    return Outcome(sorted(findings), rewrite.apply(unit.data, edits).decode())
