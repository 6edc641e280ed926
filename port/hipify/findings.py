"""What a conversion has to say about a place in the sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One report entry. Only an `error` changes the exit status.

    `file` is relative to the source folder, `line` and `column` are 1-based, counted in bytes of
    the source as given; 0 stands for the file as a whole.
    """

    file: str
    line: int
    column: int
    rule: str
    severity: Severity
    name: str
    message: str
    remedy: str
