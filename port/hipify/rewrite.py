"""Edits over byte ranges, and the one place that applies them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from port.hipify import lexer

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the bytes `[start, end)` by `text`.

    `compat` is the CUDA names whose wrappers the compat header has to carry for `text`; `header`
    is the HIP header that an include now names.
    """

    start: int
    end: int
    text: bytes
    compat: tuple[str, ...] = ()
    header: str = ""


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """`data` with all edits made. Of edits that overlap, the one given first is made.

    Line splices inside a replaced range move behind its new text, so that lines keep their number.
    """
    pieces = []
    position = 0
    for edit in sorted(settle(edits)):
        pieces.append(data[position : edit.start])
        pieces.append(edit.text)
        old = data[edit.start : edit.end]
        missing = old.count(b"\n") - edit.text.count(b"\n")
        if missing > 0:
            pieces.append(_line_ends(old, missing))
        position = edit.end
    pieces.append(data[position:])
    return b"".join(pieces)


def settle(edits: Iterable[Edit]) -> list[Edit]:
    """The edits to make, by position; of those that overlap, the one given first."""
    kept: list[Edit] = []
    taken: set[int] = set()
    for edit in edits:
        span = range(edit.start, max(edit.end, edit.start + 1))
        if taken.isdisjoint(span):
            taken.update(span)
            kept.append(edit)
    return sorted(kept)


def _line_ends(old: bytes, count: int) -> bytes:
    ends = lexer.splices(old) or [b"\n"] * count
    return b"".join(ends[-count:])
