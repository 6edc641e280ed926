"""Every case of `cases/` holds: one small tree for each kind of fault a conversion can make."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.port.hipify.conversion import Case, cases, convert

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

HERE = Path(__file__).resolve().parent
CASES = cases(HERE / "cases")


_REPORT = re.compile(r"r0*(\d+)-")


def _of_report(case: Case) -> ParameterSet:
    """The case; a folder named r07-… is that of field report 7."""
    number = _REPORT.match(case.folder.name)
    marks = [pytest.mark.report(number[1])] if number else []
    return pytest.param(case, id=case.folder.name, marks=marks)


@pytest.mark.parametrize("case", [_of_report(case) for case in CASES])
def test_conversion_is_as_the_case_says(case: Case, tmp_path: Path) -> None:
    source = case.folder / "src"
    before = _bytes_of(source)
    run = convert(source, tmp_path / "out", *case.expect.get("arguments", ()))
    assert not case.faults(run)
    assert _bytes_of(source) == before
    if left := case.left_to_compiler(run):
        pytest.skip(f"no clang 17 or newer with HIP headers to judge: {', '.join(left)}")


@pytest.mark.report("3")
@pytest.mark.parametrize("case", CASES, ids=[case.folder.name for case in CASES])
def test_converting_the_output_again_changes_nothing(case: Case, tmp_path: Path) -> None:
    first = convert(case.folder / "src", tmp_path / "a", *case.expect.get("arguments", ()))
    convert(first.out, tmp_path / "b")
    for path in first.out.rglob("*"):
        if path.is_file() and ".hipify" not in path.parts:
            again = tmp_path / "b" / path.relative_to(first.out)
            assert again.read_bytes() == path.read_bytes(), path.name


def _bytes_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
