"""The C++ tests of what the native layer computes without a GPU, under sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import doctests

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "tests/native/cpp").glob("*.cpp"))
CASES = doctests.cases(SOURCES)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The test program, built with address and undefined-behaviour sanitizers."""
    path = tmp_path_factory.mktemp("cpp") / "native_tests"
    flags = ["-std=c++20", "-g", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = ["c++", *flags, *sanitizers, "-I", ROOT / "native/include", *SOURCES, "-o", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("case", CASES)
def test_case_of_the_native_layer(program, case):
    doctests.check(program, case)


def test_the_program_has_no_case_that_is_not_run_here(program):
    doctests.check_number(program, len(CASES))
