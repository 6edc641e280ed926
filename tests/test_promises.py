"""Every promise of docs/promises.md, and every field report, has a test that carries its id."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LISTS = {"promise": ROOT / "docs/promises.md", "report": ROOT / "docs/field-reports.md"}
# What the runtime promises; a row may not be lost with its test.
RUNTIME = [
    *(f"R{number:02}" for number in range(1, 10)),
    *(f"S{number:02}" for number in range(1, 10)),
    *(f"N{number:02}" for number in range(1, 7)),
    *(f"F{number:02}" for number in range(1, 8)),
    *(f"X{number:02}" for number in range(1, 9) if number != 6),  # X06 is the dashboard's
]
_ROW = re.compile(r"^\| ([A-Z]?\d+) \|", re.MULTILINE)


def listed(kind: str) -> list[str]:
    return _ROW.findall(LISTS[kind].read_text(encoding="utf-8"))


def carried(kind: str, root: Path) -> dict[str, list[str]]:
    """Ids in `pytest.mark.<kind>(…)` marks, each with the files that carry it."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == f"pytest.mark.{kind}"):
                continue
            for argument in node.args:
                if not isinstance(argument, ast.Constant):
                    continue
                found.setdefault(str(argument.value), []).append(path.relative_to(root).as_posix())
    return found


def cases_of_reports(root: Path) -> set[str]:
    """Reports whose case is a folder, tests/port/hipify/cases/r07-…; they are marked by that."""
    names = (path.name for path in (root / "port/hipify/cases").glob("r[0-9]*-*"))
    return {name[1:].partition("-")[0].lstrip("0") for name in names}


def test_every_promise_has_a_test():
    assert set(listed("promise")) - set(carried("promise", ROOT / "tests")) == set()


def test_the_promises_of_the_runtime_are_listed():
    assert set(RUNTIME) - set(listed("promise")) == set()


def test_every_field_report_has_a_test():
    have = set(carried("report", ROOT / "tests")) | cases_of_reports(ROOT / "tests")
    assert set(listed("report")) - have == set()


@pytest.mark.parametrize("kind", ["promise", "report"])
def test_an_id_is_listed_once(kind):
    ids = listed(kind)
    assert ids
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("kind", ["promise", "report"])
def test_no_test_carries_an_unknown_id(kind):
    assert set(carried(kind, ROOT / "tests")) - set(listed(kind)) == set()


def test_marks_are_found_on_functions_and_parameters(tmp_path):
    (tmp_path / "test_a.py").write_text(
        'pytestmark = pytest.mark.promise("B01")\n'
        '@pytest.mark.promise("B02", "B03")\n'
        "def test_x(): ...\n",
        encoding="utf-8",
    )
    assert set(carried("promise", tmp_path)) == {"B01", "B02", "B03"}
