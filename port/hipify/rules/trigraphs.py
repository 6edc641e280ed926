"""Trigraphs, which hide a directive or split a name; compilers read them in C and up to C++14."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"trigraph": "A trigraph hides a directive or splits a name"}

_HIDES = re.compile(rb"^[ \t]*(\?\?=)|(?<=\w)(\?\?/)\r?$", re.MULTILINE)


def rule(unit: Unit, _context: Context) -> Iterator[Finding | Edit]:
    """Report `??=include` and a name that `??/` continues on the next line."""
    if b"??" not in unit.data:
        return
    starts = unit.tokens.starts
    for match in _HIDES.finditer(unit.data):
        offset = match.start(match.lastindex or 0)
        token = bisect_left(starts, offset)
        if token == len(starts) or starts[token] != offset:
            continue
        text = unit.data[offset : offset + 3].decode()
        plain = "#" if text == "??=" else "a backslash"
        yield unit.finding(
            "trigraph",
            "error",
            token,
            f"the trigraph {text} stands for {plain} in C and in C++ before C++17; what it hides "
            "is not converted",
            f"write {plain} for it",
            name=text,
        )
