"""Calls of hipBLAS whose types another release of it declares otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.rules.calls import calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"library-interface": "A call takes an interface that not every release of a library has"}

_SECOND = "_v2"


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Note each mixed-type product that calls hipBLAS's second interface.

    hipBLAS 2 declares such a call twice: with hipblasDatatype_t for every type, and as `…_v2` with
    hipDataType and hipblasComputeType_t, which are CUDA's. Releases before and after have one.
    """
    for name in unit.names:
        if not (name.startswith(b"cublas") and name.endswith(b"Ex")):
            continue
        entry = context.mapping.lookup(name.decode("latin-1"))
        if entry is None or entry.target is None or not entry.target.endswith(_SECOND):
            continue
        for call in calls(unit, name):
            yield unit.finding(
                "library-interface",
                "note",
                call.name,
                f"{entry.name} becomes {entry.target}, which takes hipDataType and "
                f"hipblasComputeType_t; hipBLAS 2, that of ROCm 6, is the one that declares it",
                "convert with --rocm 7.1 for hipBLAS 3, which has these types without the suffix",
            )
