"""The pages say what the code does: generated parts are fresh, links lead to files, sessions that
are named exist, and quoted error texts are the ones that are raised.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from tests.ci import test_workflows

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*/*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(([^)#:\s]+)(?:#[^)]*)?\)")
_SESSIONS = re.compile(r"\./ci/nox -s ((?:[a-z][a-z-]*\b ?)+)")
_GAP = "…"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_those_of_the_code(generate, page):
    text = page.read_text(encoding="utf-8")
    assert generate.rendered(text, generate.parts()) == text, "run: python docs/generate.py"


def test_every_part_is_on_a_page_and_a_changed_one_is_noticed(generate):
    made = generate.parts()
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"<!-- generated: (\S+) -->", text)) == set(made)
    page = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    assert generate.rendered(page.replace("| 70 |", "| 71 |"), made) == page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_to_files(page):
    targets = _LINK.findall(page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions_that_are_named_exist(page):
    named = {
        word
        for words in _SESSIONS.findall(page.read_text(encoding="utf-8"))
        for word in words.split()
    }
    assert named - test_workflows.sessions_defined() == set()


def _raised() -> list[str]:
    """Every text in the sources, with a gap where a value is put in."""
    texts = []
    for top in ("port", "runtime/monarch", "ci"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.JoinedStr):
                    texts.append(
                        "".join(
                            str(part.value) if isinstance(part, ast.Constant) else _GAP
                            for part in node.values
                        )
                    )
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.append(node.value)
    return texts


def _quoted() -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = readme.partition("## Troubleshooting")[2].partition("\n## ")[0].splitlines()[3:]
    firsts = [row.split(" | ")[0] for row in rows if row.startswith("| `")]
    return [text for first in firsts for text in re.findall(r"`([^`]+)`", first)]


def test_error_texts_of_the_readme_are_the_ones_that_are_raised():
    raised = _raised()
    quoted = _quoted()
    assert len(quoted) > 5
    for text in quoted:
        pattern = re.compile(".*".join(map(re.escape, text.split(_GAP))), re.DOTALL)
        assert any(pattern.search(one) for one in raised), f"nothing raises: {text}"
