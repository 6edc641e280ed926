"""Calls that leave out arguments which have a default in CUDA's C++ interface and none in HIP's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.calls import calls, is_plain
from port.hipify.declarations import declares
from port.hipify.rewrite import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.unit import Unit

RULES: dict[str, str] = {}

_MEMBER = (b".", b"->")
_DEFAULTS = {
    b"cudaGraphInstantiateWithFlags": (2, (b"0",)),
    b"cudaLaunchCooperativeKernel": (4, (b"0", b"0")),
    b"cudaMalloc3DArray": (3, (b"0",)),
    b"cudaMemcpy2DArrayToArray": (8, (b"hipMemcpyDeviceToDevice",)),
    b"cudaMemcpyFromSymbolAsync": (3, (b"0", b"hipMemcpyDeviceToHost")),
    b"cudaMemcpyToSymbolAsync": (3, (b"0", b"hipMemcpyHostToDevice")),
    b"cudaSignalExternalSemaphoresAsync": (3, (b"0",)),
    b"cudaWaitExternalSemaphoresAsync": (3, (b"0",)),
}
"""By function, how many arguments have none, and the values of those that HIP wants written."""


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Write out the values that CUDA's headers give the arguments that a call leaves out."""
    for name, (needed, values) in _DEFAULTS.items():
        entry = context.mapping.lookup(name.decode()) if unit.find(name) else None
        if entry is None or entry.how != "plain":
            continue
        for call in calls(unit, name):
            if unit.text(call.name - 1) in _MEMBER or declares(unit, call.name):
                continue
            given = len(call.arguments)
            left_out = values[max(given - needed, 0) :]
            if given >= needed and left_out and is_plain(unit, call):
                close = unit.tokens.starts[call.close]
                yield Edit(close, close, b"".join(b", " + value for value in left_out))
