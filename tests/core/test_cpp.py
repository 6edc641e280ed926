"""The C++ tests of the core, as one test here for each test case there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ci import cpp

_CASE = re.compile(r"^\s*TEST_CASE\(\"((?:[^\"\\]|\\.)*)\"", re.MULTILINE)
_SOURCES = sorted((Path(cpp.__file__).parents[1] / "runtime/core").rglob("*_test.cpp"))
CASES = [case for path in _SOURCES for case in _CASE.findall(path.read_text(encoding="utf-8"))]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def program() -> Path:
    # cmake and ninja are this interpreter's, whatever the system brings.
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in cpp.TESTS.commands():
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert done.returncode == 0, done.stdout + done.stderr
    return cpp.TESTS.folder / "core_tests"


@pytest.mark.parametrize("case", CASES)
def test_case_of_the_core(program, case):
    # A comma separates filters, and only a pattern says that it is meant.
    name = case.replace(",", "?")
    done = subprocess.run(
        [program, f"--test-case={name}", "--minimal"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_program_has_no_case_that_is_not_run_here(program):
    listed = subprocess.run([program, "--count"], capture_output=True, text=True, check=True).stdout
    assert str(len(CASES)) in re.findall(r"\d+", listed)
