"""Driver entry points asked for with a CUDA version: name, function, flag and version belong
together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.calls import calls
from port.hipify.lexer import STRING
from port.hipify.rules.tokens import literal, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"versioned-lookup": "An entry point is looked up with a CUDA version number"}

_VERSION_AT = {
    b"cuGetProcAddress": 2,
    b"cuGetProcAddress_v2": 2,
    b"cudaGetDriverEntryPointByVersion": 2,
}


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Report each such call where HIP has the function; the map reports it where HIP has none."""
    for name, place in _VERSION_AT.items():
        entry = context.mapping.lookup(name.decode("utf-8", "replace"))
        if entry is None or not entry.target:
            continue
        for call in calls(unit, name):
            if len(call.arguments) <= place or not call.arguments[place]:
                continue
            asked = _asked(unit, call.arguments[0])
            version = " ".join(word(unit, index) for index in call.arguments[place])
            yield unit.finding(
                "versioned-lookup",
                "error",
                call.name,
                f"{word(unit, call.name)} asks for {asked} with version {version}, which counts "
                "CUDA's releases; HIP counts its own",
                f"on HIP call {entry.target} with HIP_VERSION's count (MAJOR * 100 + MINOR) and "
                "HIP's flags, or take the function's address",
            )


def _asked(unit: Unit, argument: range) -> str:
    if len(argument) == 1 and unit.kind(argument[0]) == STRING:
        return literal(unit, argument[0]) or "a symbol"
    return "a symbol"
