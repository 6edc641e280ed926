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
    for edit in settle(edits):
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
    taken = Taken()
    return sorted(
        (edit for edit in edits if taken.take(edit)), key=lambda each: (each.start, each.end)
    )


class Taken:
    """The bytes that edits replace so far."""

    def __init__(self) -> None:
        self._bytes: set[int] = set()

    def __contains__(self, offset: object) -> bool:
        return offset in self._bytes

    def take(self, edit: Edit) -> bool:
        """Whether `edit` may be made beside those taken before; if so, it is taken as well.

        An insertion takes no bytes: it may stand right before an edit, but not inside one.
        """
        if edit.start == edit.end:
            return not (edit.start in self._bytes and edit.start - 1 in self._bytes)
        span = range(edit.start, edit.end)
        if not self._bytes.isdisjoint(span):
            return False
        self._bytes.update(span)
        return True


def _line_ends(old: bytes, count: int) -> bytes:
    ends = lexer.splices(old) or [b"\n"] * count
    return b"".join(ends[-count:])
