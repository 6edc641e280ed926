"""Headers of the project that lie outside of the source folder, where `-I` finds them.

They are not converted; what they declare is the project's own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from port.hipify.tree import Input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from port.hipify.facts import Facts

_LARGEST = 4 << 20
_OF_CUDA = ("cuda_runtime_api.h", "cuda.h")


def read(
    root: Path,
    folders: tuple[str, ...],
    inside: Mapping[str, Facts],
    gather: Callable[[Input], Facts],
) -> Iterator[Input]:
    """The headers that files of the tree include from `folders`, directly or through others.

    Folders inside `root` are inputs anyway, and CUDA's own are not the project's: both are left
    out, and so is what cannot be read.
    """
    base = os.path.realpath(root)
    places = [os.path.realpath(folder) for folder in folders]
    places = [
        place
        for place in places
        if os.path.commonpath((place, base)) != base
        and not all(os.path.exists(os.path.join(place, name)) for name in _OF_CUDA)
    ]
    if not places:
        return
    waiting = [included for facts in inside.values() for included, _ in facts.includes]
    seen: set[str] = set()
    while waiting:
        included = waiting.pop()
        for folder in places:
            path = os.path.realpath(os.path.join(folder, included))
            if path in seen or os.path.commonpath((path, base)) == base:
                continue
            seen.add(path)
            header = _read(path)
            if header is not None:
                yield header
                waiting += [name for name, _ in gather(header).includes]


def _read(path: str) -> Input | None:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            return Input(path, file.read(), 0o644, is_code=True)
    except OSError:
        return None
