"""Every promise of docs/promises.md, and every field report, has a test that carries its id."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LISTS = {"promise": ROOT / "docs/promises.md", "report": ROOT / "docs/field-reports.md"}
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
                assert isinstance(argument, ast.Constant), f"{path}: ids are literals"
                found.setdefault(str(argument.value), []).append(path.relative_to(root).as_posix())
    return found


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
