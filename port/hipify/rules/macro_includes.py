"""Headers named by macros: `#define H <cuda.h>` and `#include H`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.lexer import STRING
from port.hipify.rules.tokens import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.preprocess import Macro
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"macro-include": "A macro names a CUDA header that has no counterpart"}


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Map a macro whose whole body is the name of a CUDA header."""
    for macro in unit.macros:
        path = _header(unit, macro)
        entry = None if path is None else context.mapping.include(path)
        if entry is None:
            continue
        if entry.target is None:
            yield unit.finding(
                "macro-include",
                "error",
                macro.body[0],
                f"the macro {macro.name.decode('latin-1')} names the CUDA header {entry.path}, "
                f"which HIP {context.release} lacks",
                entry.note or "guard the macro and what includes it with __HIP_PLATFORM_AMD__",
                name=entry.path,
            )
        else:
            text = f"<{entry.target}>".encode()
            yield unit.edit(macro.body[0], macro.body[-1] + 1, text)


def _header(unit: Unit, macro: Macro) -> str | None:
    if macro.parameters is not None or not macro.body:
        return None
    first = macro.body[0]
    if len(macro.body) == 1 and unit.kind(first) == STRING:
        return literal(unit, first)
    if unit.text(first) == b"<" and unit.text(macro.body[-1]) == b">":
        return unit.slice(first + 1, macro.body[-1]).decode("latin-1").strip()
    return None
