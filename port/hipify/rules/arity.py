"""Calls whose number of arguments fits no prototype of the HIP function they become."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.calls import calls, is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"arity": "A call has more or fewer arguments than the HIP function takes"}

_RENAMES = frozenset(("plain", "exception"))
_C_SUFFIX = ".c"


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Compare each call that is only renamed with HIP's prototype.

    HIP's C++ declarations give some last parameters a default, so fewer arguments count only where
    CUDA's own prototypes take that number and HIP's take at least two more, or in C.
    """
    kinds = context.cuda.kinds
    for name in unit.names:
        if not name.startswith(b"cu") or kinds.get(name) != "function":
            continue
        text = name.decode()
        entry = context.mapping.lookup(text)
        if entry is None or not entry.target or entry.how not in _RENAMES:
            continue
        hip = context.hip.get(entry.target)
        cuda = context.cuda.get(text)
        if hip is None or hip.parameters is None or cuda is None or cuda.parameters is None:
            continue
        if "..." in hip.parameters or "..." in cuda.parameters:
            continue
        wanted = len(hip.parameters)
        known = {len(cuda.parameters), *(len(older) for older in cuda.older)}
        if known == {wanted}:
            continue
        for call in calls(unit, name):
            given = len(call.arguments)
            few = given + (1 if unit.path.endswith(_C_SUFFIX) else 2) <= wanted and given in known
            if (given > wanted or few) and is_plain(unit, call):
                yield unit.finding(
                    "arity",
                    "error",
                    call.name,
                    f"{text} is called with {given} arguments; {entry.target} of HIP "
                    f"{context.release} takes {wanted}: {', '.join(hip.parameters)}",
                    entry.note or f"call {entry.target} with its own arguments on HIP",
                )
