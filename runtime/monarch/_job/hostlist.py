"""Compact lists of hosts, as schedulers write them: `rack[0-1]_node[08-11,15],login`."""

from __future__ import annotations

import itertools
import math
import re

LIMIT = 1 << 17  # hosts of one list; more is a typing error, not a cluster

_PART = re.compile(r"\[(?P<ranges>[^][]*)\]|(?P<plain>[^][,]+)")
_RANGE = re.compile(r"(?P<low>[0-9]{1,20})(?:-(?P<high>[0-9]{1,20}))?")


def expand(text: str) -> list[str]:
    """The hosts of a list, in its order; of several brackets in one name the last varies fastest.

    Numbers keep the width that they are written with: `n[08-11]` is n08 n09 n10 n11. A host that is
    listed twice comes twice.

    Raises:
        ValueError: the text is no such list; the message has it.

    """
    if not isinstance(text, str):
        raise TypeError(f"a host list is text such as 'node[01-04]', not {type(text).__name__}")
    found: list[str] = []
    for entry in _entries(text):
        parts = [_choices(part, text) for part in _parts(entry, text)]
        if len(found) + math.prod(map(len, parts)) > LIMIT:
            raise _refused(text, f"{entry!r} stands for more than {LIMIT} hosts")
        found += map("".join, itertools.product(*parts))
    return found


def _entries(text: str) -> list[str]:
    """What stands between the commas outside brackets."""
    entries, depth = [""], 0
    for character in text.strip():
        depth += {"[": 1, "]": -1}.get(character, 0)
        if depth not in {0, 1}:
            raise _refused(text, "its brackets do not pair")
        if character == "," and not depth:
            entries.append("")
        else:
            entries[-1] += character
    if depth:
        raise _refused(text, "its brackets do not pair")
    entries = [entry.strip() for entry in entries]
    if not all(entries):
        raise _refused(text, "a host is missing" if len(entries) > 1 else "it is empty")
    return entries


def _parts(entry: str, text: str) -> list[re.Match[str]]:
    if any(character.isspace() for character in entry):
        raise _refused(text, f"{entry!r} has a space; commas separate hosts")
    return list(_PART.finditer(entry))


def _choices(part: re.Match[str], text: str) -> list[str]:
    if part["plain"]:
        return [part["plain"]]
    found: list[str] = []
    for piece in part["ranges"].split(","):
        match = _RANGE.fullmatch(piece)
        if match is None:
            raise _refused(
                text, f"[{part['ranges']}] needs numbers and ranges such as [001,003-004]"
            )
        low, high = match["low"], match["high"] or match["low"]
        if int(high) < int(low) or (len(high) != len(low) and high.startswith("0")):
            raise _refused(text, f"{piece} is no range from a lower to a higher number")
        if int(high) - int(low) >= LIMIT:
            raise _refused(text, f"{piece} stands for more than {LIMIT} hosts")
        found += [str(n).zfill(len(low)) for n in range(int(low), int(high) + 1)]
    return found


def _refused(text: str, why: str) -> ValueError:
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return ValueError(f"{shown!r} is no host list: {why}")
