"""Namespaces of the vendor's libraries: `cub::BlockReduce` is `hipcub::BlockReduce`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES: dict[str, str] = {}

_NOT_A_SPACE = frozenset((b"return", b"const", b"constexpr", b"static", b"typename", b"case"))


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Rename the namespaces whose headers the tree includes; a copy of those is left alone."""
    for name in sorted(context.namespaces):
        entry = context.mapping.namespace(name)
        if entry is None or entry.target is None or f"/{name}/" in f"/{unit.path}":
            continue
        for index in unit.find(name.encode()):
            if _is_meant(unit, index):
                yield unit.edit(index, index + 1, entry.target.encode())


def _is_meant(unit: Unit, index: int) -> bool:
    after = unit.text(index + 1)
    first = index - 1 if unit.text(index - 1) == b"::" else index  # `::cub` is the global one
    before = unit.text(first - 1)
    if before == b"namespace":
        return after != b"="  # the project's own name for another one
    if first != index and unit.kind(first - 1) == IDENT and before not in _NOT_A_SPACE:
        return False  # one of that name inside of another one
    if after == b"::":
        return before not in (b".", b"->")
    return after == b";" and before == b"=" and unit.text(first - 3) == b"namespace"
