"""The C++ tests of the core, as one test here for each test case there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci import cpp
from tests import doctests

_SOURCES = sorted((Path(cpp.__file__).parents[1] / "runtime/core").rglob("*_test.cpp"))
CASES = doctests.cases(_SOURCES)
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
    doctests.check(program, case)


def test_the_program_has_no_case_that_is_not_run_here(program):
    doctests.check_number(program, len(CASES))
