"""One part of the compat header."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """The name that the output uses, its text, and the CUDA names whose pieces it builds on.

    `symbol`: the library's function that has the same calling sequence.
    """

    target: str
    text: str
    needs: tuple[str, ...] = ()
    note: str = ""
    symbol: str | None = None
