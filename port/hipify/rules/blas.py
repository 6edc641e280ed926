"""Calls of cuBLAS that take one of its interfaces, where hipBLAS has another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify import legacy_blas
from port.hipify.calls import call_at, calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"library-interface": "A call takes an interface that not every release of a library has"}

_SECOND = "_v2"


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Carry calls of the interface without handles; note mixed-type products of the other.

    hipBLAS 2 declares such a call twice: with hipblasDatatype_t for every type, and as `…_v2` with
    hipDataType and hipblasComputeType_t, which are CUDA's. Releases before and after have one.
    """
    for name in unit.names:
        if not name.startswith(b"cublas"):
            continue
        yield from _first_interface(unit, context, name)
        if not name.endswith(b"Ex"):
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


def _first_interface(unit: Unit, context: Context, name: bytes) -> Iterator[Finding | Edit]:
    """Calls with the arguments of cublas.h, and names without any where the tree has it alone."""
    text = name.decode("latin-1")
    taken = legacy_blas.arity(text, context.mapping)
    if taken is None:
        return
    asked = legacy_blas.asked_for(text)
    piece = legacy_blas.find(asked, context.mapping)
    first = legacy_blas.FIRST in context.project.included
    only = first and legacy_blas.SECOND not in context.project.included
    for index in unit.find(name):
        call = call_at(unit, index)
        meant = only if call is None else len(call.arguments) == taken
        if meant and piece is not None:
            yield unit.edit(index, index + 1, piece.target.encode(), compat=(asked,))
        elif meant or (call is None and any(i.path == legacy_blas.FIRST for i in unit.includes)):
            yield unit.finding(
                "library-interface",
                "error",
                index,
                f"{text} is one of cuBLAS's first interface, without a handle; hipBLAS has the "
                "second alone",
                "call the function of cublas_v2.h, with a handle and its scalars by pointer",
            )
