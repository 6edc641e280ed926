"""Attributes and error codes that HIP lacks: a value that no HIP call knows stands for them.

Asking HIP for such an attribute fails with `hipErrorInvalidValue`, and no call returns such an
error, which is what the code around handles already. The place is reported as an error all the
same. What a later release has is left to the report of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.mapping import Entry
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"stand-in": "An attribute or error code that HIP lacks was replaced by an unused value"}

_ENUMS = {
    "CUdevice_attribute": ("hipDeviceAttribute_t", 32_000),
    "CUdevice_attribute_enum": ("hipDeviceAttribute_t", 32_000),
    "cudaDeviceAttr": ("hipDeviceAttribute_t", 32_000),
    "CUresult": ("hipError_t", 1_055),
    "cudaError_enum": ("hipError_t", 1_055),
    "cudaError": ("hipError_t", 1_055),
}
"""HIP's type, and what is added to CUDA's number: past every value that HIP uses (20,000 and 1,054
are its largest) and within the bits of the enumeration (32,767 and 2,047)."""
_LARGEST = {"hipDeviceAttribute_t": 32_767, "hipError_t": 2_047}


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Replace and report each use outside of preprocessor conditions."""
    for name in unit.names:
        text = name.decode("utf-8", "replace")
        if not text.startswith(("CU", "cudaDevAttr", "cudaError")):
            continue
        value = _value(context, text)
        entry = context.mapping.lookup(text)
        if value is None or entry is None or entry.target is not None or entry.since:
            continue
        if name in context.project.defined:
            continue
        for index in unit.find(name):
            directive = unit.directive_at(index)
            qualified = unit.text(index - 1) in (b".", b"->", b"::")
            if qualified or (directive is not None and directive.name != b"define"):
                continue
            yield unit.edit(index, index + 1, value)
            yield _finding(unit, context, index, entry)


def _value(context: Context, name: str) -> bytes | None:
    if context.cuda.kind(name) != "enumerator":
        return None
    declaration = context.cuda.get(name)
    chosen = _ENUMS.get(declaration.result) if declaration is not None else None
    if declaration is None or chosen is None:
        return None
    kind, offset = chosen
    try:
        number = offset + int(declaration.value, 0)
    except ValueError:
        return None
    return f"(({kind}){number})".encode() if number <= _LARGEST[kind] else None


def _finding(unit: Unit, context: Context, index: int, entry: Entry) -> Finding:
    attribute = entry.name.startswith(("CU_DEVICE", "cudaDevAttr"))
    effect = "asking for it fails with hipErrorInvalidValue" if attribute else "no call returns it"
    return unit.finding(
        "stand-in",
        "error",
        index,
        f"{entry.name} has no counterpart in HIP {context.release}; a number that HIP does "
        f"not use stands for it, so {effect}",
        entry.note or "leave it out on HIP, or give a name for it with --map",
    )
