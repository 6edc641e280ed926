"""Namespaces of the vendor's libraries: `cub::BlockReduce` is `hipcub::BlockReduce`."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from port.hipify.rules.tokens import is_inner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES: dict[str, str] = {}


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Rename the namespaces whose headers the tree includes; a copy of those is left alone."""
    for name, target in sorted(context.namespaces.items()):
        copy = context.project.by_tail(f"{name}/{name}.cuh")
        if copy is not None and unit.path.startswith(f"{posixpath.dirname(copy)}/"):
            continue
        for index in unit.find(name.encode()):
            if _is_meant(unit, index):
                yield unit.edit(index, index + 1, target.encode())


def _is_meant(unit: Unit, index: int) -> bool:
    if is_inner(unit, index):
        return False
    after = unit.text(index + 1)
    first = index - 1 if unit.text(index - 1) == b"::" else index  # `::cub` is the global one
    before = unit.text(first - 1)
    if before == b"namespace":
        return after != b"="  # the project's own name for another one
    alias = before == b"=" and unit.text(first - 3) == b"namespace"
    return after == b"::" or (alias and after == b";")
