"""The C++ tests of what the native layer computes without a GPU, under sanitizers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "tests/native/cpp").glob("*.cpp"))
CASES = [
    case
    for path in SOURCES
    for case in re.findall(r'^TEST_CASE\("([^"]+)"', path.read_text("utf-8"), re.MULTILINE)
]
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
    name = case.replace(",", "?")  # a comma separates filters
    done = subprocess.run(
        [program, f"--test-case={name}", "--minimal"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_program_has_no_case_that_is_not_run_here(program):
    listed = subprocess.run([program, "--count"], capture_output=True, text=True, check=True).stdout
    assert str(len(CASES)) in re.findall(r"\d+", listed)
