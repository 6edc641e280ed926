"""Pages that are programs: their pieces run in order, and print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs/getting-started.md", ROOT / "README.md"]
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = "---- end of a piece"


def pieces(text: str) -> list[tuple[str, str]]:
    """Each block of Python with the output that follows it on the page."""
    found: list[tuple[str, str]] = []
    for kind, body in _BLOCK.findall(text):
        if kind == "python":
            found.append((body, ""))
        else:
            code, before = found[-1]
            assert before == "", "two outputs after one block"
            found[-1] = (code, body)
    return found


@pytest.mark.timeout(90)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_prints_what_it_says(page, tmp_path):
    found = pieces(page.read_text(encoding="utf-8"))
    assert any(output for _, output in found)
    program = tmp_path / "page.py"
    program.write_text("".join(f"{code}print({_MARK!r})\n" for code, _ in found), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "runtime")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=80,
    )
    printed = done.stdout.split(_MARK + "\n")
    assert done.stderr == ""
    assert printed[:-1] == [output for _, output in found]
    assert done.returncode == 0
