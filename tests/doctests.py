"""Test cases of doctest programs, so that each of them is a test of pytest."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CASE = re.compile(r"^\s*TEST_CASE\(\"((?:[^\"\\]|\\.)*)\"", re.MULTILINE)


def cases(sources: Iterable[Path]) -> list[str]:
    """The names of the test cases in these files."""
    return [case for path in sources for case in _CASE.findall(path.read_text(encoding="utf-8"))]


def check(program: Path, case: str) -> None:
    """Run one test case of a program."""
    # A comma separates filters, and only a pattern says that it is meant.
    name = case.replace(",", "?")
    done = subprocess.run(
        [program, f"--test-case={name}", "--minimal"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check_number(program: Path, number: int) -> None:
    """See that a program has this many test cases."""
    listed = subprocess.run([program, "--count"], capture_output=True, text=True, check=True).stdout
    assert str(number) in re.findall(r"\d+", listed)
