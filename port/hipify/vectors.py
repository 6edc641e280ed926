"""CUDA's types of vectors and halves, by their own names and by those that a tree gives them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

VECTOR = re.compile(
    rb"(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]|cu(?:Float|Double)?Complex"
    rb"|(?:__)?half2?|(?:__)?nv_bfloat162?"
)


def named(aliases: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """The names that lead to such a type; `aliases` are (name, what it stands for) pairs."""
    leading: dict[bytes, set[bytes]] = {}
    for alias, meant in aliases:
        leading.setdefault(meant, set()).add(alias)
    waiting = [meant for meant in leading if VECTOR.fullmatch(meant)]
    found: set[bytes] = set()
    while waiting:
        reached = leading.get(waiting.pop(), set()) - found
        found |= reached
        waiting += reached
    return frozenset(found)
