"""The tree speaks of the project alone: no machine's paths, no index's host."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Written in halves, so that this file passes its own check.
_WORDS = (
    ("/wo", "rk/"),
    ("/root/", r"\.pyenv"),
    ("pypi", r"\.org"),
    ("python", "hosted"),
    ("deb\\.", r"debian\.org"),
    ("npm", r"js\.org"),
    ("co-author", "ed-by"),
    ("clau", "de"),
    ("anthro", "pic"),
    ("chat", "gpt"),
    ("co", "pilot"),
    (r"\bL", r"LM\b"),
    (r"\bAI", r"[ -]"),
)
FORBIDDEN = re.compile("|".join(first + second for first, second in _WORDS), re.IGNORECASE)


def test_no_tracked_file_speaks_of_where_it_was_made():
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout (an sdist, say), so what is tracked is unknown")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    found = []
    for name in filter(None, listed):
        path = ROOT / name
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" in data:  # not text: compressed tables, fixtures
            continue
        text = data.decode("utf-8", "replace")
        found += [
            f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
            for match in FORBIDDEN.finditer(text)
        ]
    assert found == []
