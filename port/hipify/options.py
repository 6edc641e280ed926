"""What the user chooses for a conversion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
"""Of the conversion: raised when the same input may give another output."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chose; part of every cache key."""

    rocm: str = "6.4"
    defines: Mapping[str, str] = field(default_factory=dict)
    """`-D`: macro name to value."""
    include_dirs: tuple[str, ...] = ()
    """`-I`, as given."""
    extensions: tuple[str, ...] = ()
    map_file: str | None = None
    torch_map: bool = False
    headers: str | None = None
