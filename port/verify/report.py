"""Verdicts: checks with stable codes, and the report that carries them."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, NamedTuple

from port.text import counted, printable

Severity = Literal["error", "warning"]

SCHEMA = 1
_MOST_PASSED = 8

# The one list of codes; docs/verify.md explains each.
NAMES: dict[str, str] = {
    "V01": "cuda-runtime",
    "V02": "driver",
    "V03": "rocm-runtime",
    "V04": "runtime-major",
    "V05": "run-path",
    "V06": "run-path-tag",
    "V07": "device-code",
    "V08": "version-needs",
    "V09": "platform",
    "V10": "architectures",
    "V11": "platform-tag",
    "V12": "version-label",
    "V13": "size",
    "V14": "identity",
    "V15": "unresolved",
    "V16": "record",
    "V17": "interpreter-safety",
    "V18": "exports",
    "V19": "archive",
    "V20": "native-code",
    "V21": "stand-in",
    "V22": "library-twins",
    "V23": "converted-sources",
}


class Check(NamedTuple):
    """One verdict. `file` is inside the target, empty where the whole target is meant."""

    code: str
    name: str
    ok: bool
    severity: Severity
    file: str
    detail: str
    remedy: str


def passed(code: str, detail: str, file: str = "", severity: Severity = "error") -> Check:
    """A check that found nothing wrong."""
    return Check(code, NAMES[code], ok=True, severity=severity, file=file, detail=detail, remedy="")


def failed(
    code: str, detail: str, remedy: str, file: str = "", severity: Severity = "error"
) -> Check:
    """A check that found something: what was found and wanted, and the repair."""
    return Check(
        code, NAMES[code], ok=False, severity=severity, file=file, detail=detail, remedy=remedy
    )


class Report(NamedTuple):
    """All verdicts on one target. `platform` is None where files of several platforms are mixed."""

    target: str
    platform: str | None
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether no check of severity error failed."""
        return all(check.ok or check.severity != "error" for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints for one target."""
        return {
            "schema": SCHEMA,
            "target": self.target,
            "platform": self.platform,
            "ok": self.ok,
            "checks": [check._asdict() for check in self.checks],
        }

    def to_text(self) -> str:
        """The report for people: a line for each check, the repair below those that failed.

        Many passed checks of one code are shortened to the first; `to_json` has them all.
        """
        lines = [f"{self.target}: platform {self.platform or 'mixed'}"]
        seen: Counter[str] = Counter()
        for check in self.checks:
            seen[check.code] += check.ok
            if check.ok and seen[check.code] > _MOST_PASSED:
                continue
            word = "ok" if check.ok else check.severity
            where = f"{check.file}: " if check.file else ""
            lines.append(f"  {word:7} {check.code} {check.name}: {where}{check.detail}")
            if check.remedy:
                lines.append(f"          repair: {check.remedy}")
        for code, count in seen.items():
            if count > _MOST_PASSED:
                more = count - _MOST_PASSED
                lines.append(
                    f"  ok      {code} {NAMES[code]}: {counted(more, 'more file')} (--json has all)"
                )
        failed_count = sum(not check.ok for check in self.checks)
        verdict = "clean" if self.ok else "not clean"
        made = counted(len(self.checks), "check")
        lines.append(f"{self.target}: {verdict}, {failed_count} of {made} failed")
        return "\n".join(map(printable, lines))
