"""Contexts that are created with parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.calls import calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"context-parameters": "A context is created with parameters, which HIP's contexts lack"}

_NAMES = (b"cuCtxCreate", b"cuCtxCreate_v3", b"cuCtxCreate_v4")
_NONE = frozenset((b"nullptr", b"NULL", b"0"))
_WITH_PARAMETERS = 4


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Report each creation whose parameters are not a null pointer; HIP has no place for them."""
    for name in _NAMES:
        for call in calls(unit, name):
            given = call.arguments[1] if len(call.arguments) >= _WITH_PARAMETERS else range(0)
            texts = {unit.text(index) for index in given}
            if texts and not texts <= _NONE:
                yield unit.finding(
                    "context-parameters",
                    "error",
                    call.name,
                    f"{name.decode()} is given parameters, and no context of HIP "
                    f"{context.release} takes any: the call would fail with hipErrorNotSupported",
                    "pass a null pointer on HIP, or use the device's primary context",
                )
