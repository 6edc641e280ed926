"""Ids that no other process gives: of actors, meshes and processes."""

from __future__ import annotations

import os

from monarch._actor.process import process

__all__ = ["new_id", "new_ids"]

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_last: list[int] = [0, 0]


def new_id() -> int:
    """An id, not zero: a walk through the 64-bit numbers from the random id of this process."""
    own = process().id
    last = _last
    if last[0] != own:
        last[:] = [own, own]
    last[1] = found = (last[1] + _STEP) & _MASK
    return found or new_id()


def new_ids(count: int) -> list[int]:
    """Random ids, not zero, for processes."""
    data = os.urandom(8 * count)
    return [int.from_bytes(data[at : at + 8], "little") or 1 for at in range(0, 8 * count, 8)]
