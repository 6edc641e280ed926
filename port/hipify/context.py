"""What a conversion knows beyond one file: release, map, options and the project's own names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from port.hipify.pasted import Pasted

if TYPE_CHECKING:
    from collections.abc import Mapping as Map

    from port.hipify.facts import Project
    from port.hipify.mapping import Mapping
    from port.hipify.options import Options
    from port.hipify.tables import Table


@dataclass(frozen=True, slots=True)
class Context:
    """Shared by all units of one conversion."""

    options: Options
    mapping: Mapping
    cuda: Table
    hip: Table
    project: Project
    root: str = ""
    """The real path of the source folder."""
    runtime_files: frozenset[str] = frozenset()
    """Files of the tree that include the whole HIP runtime header, themselves or through others."""
    fragments: Map[str, frozenset[str]] = field(default_factory=dict)
    """By file, the CUDA names in the fragments (`.inc`, `.def`, …) that it includes."""
    namespaces: Map[str, str] = field(default_factory=dict)
    """The vendor's namespaces whose headers the tree includes (`cub`), and what they become."""
    pasted: Pasted = field(default_factory=Pasted)

    @property
    def release(self) -> str:
        """The HIP release whose names may be emitted, such as `6.4`."""
        return self.options.rocm

    def mapping_for(self, release: str) -> Mapping:
        """The map to `release`, for code that is behind a test for it."""
        return self.mapping if release == self.release else self.mapping.at(release)
