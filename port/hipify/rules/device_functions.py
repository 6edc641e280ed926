"""Device functions of a project's own that HIP declares as well: `atomicMin` of two floats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify import preference
from port.hipify.declarations import declares
from port.hipify.vectors import VECTOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"device-function": "A device function of the project is one that HIP has, too"}

_DEVICE_ALONE = re.compile(rb"__[a-z]\w+|atomic[A-Z]\w*")
_HEADERS = ("hip/amd_detail/", "__clang_")


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Let each such function go before HIP's, which the compiler else takes for the same one.

    CUDA has fewer overloads than HIP (`atomicMin` of floats, `atomicAdd` of doubles before its
    sixth architecture), so that projects write them.
    """
    if unit.path.endswith(".c"):
        return
    for name, places in unit.names.items():
        if not _may_be_hips(context, name):
            continue
        for index in places:
            if not _is_own(unit, context, index, name):
                continue
            edit = preference.before_hips(unit, index)
            if edit is None:
                continue
            yield edit
            yield unit.finding(
                "device-function",
                "note",
                index,
                "HIP may have this function for the same arguments; an attribute of clang's makes "
                "the compiler take the project's",
                "leave it out on HIP where HIP's does the same",
            )


def _may_be_hips(context: Context, name: bytes) -> bool:
    """Whether HIP's device headers have functions of the name, or the compat header has one."""
    kind = context.hip.kinds.get(name)
    if kind is None and name.startswith(b"__") and context.cuda.kinds.get(name) == "function":
        entry = context.mapping.lookup(name.decode())
        return entry is not None and entry.how == "compat"
    if kind != "function" or name.startswith(b"make_"):
        return False
    declared = context.hip.get(name.decode())
    return declared is not None and declared.header.startswith(_HEADERS)


def _is_own(unit: Unit, context: Context, index: int, name: bytes) -> bool:
    """Whether a device function that HIP may have is declared at `index`, outside of classes.

    A template takes what none of HIP's functions does. Those with the names of host functions
    (`min`) have to be said to be the device's, and HIP has none of them for vectors.
    """
    if unit.text(index + 1) != b"(" or unit.text(index - 1) == b"define":
        return False
    if not declares(unit, index):
        return False
    first = preference.first_token(unit, index)
    if unit.text(first - 1) in (b">", b">>"):
        return False
    for_device = b"__device__" in unit.texts[first:index]
    scope = unit.scopes.at(index).kind
    if not for_device and (unit.directive_at(index) or not _begins(unit, first)):
        return False
    if scope not in ("file", "namespace") and not (scope == "function" and for_device):
        return False
    if _DEVICE_ALONE.fullmatch(name):
        return True
    close = unit.partner(index + 1)
    if not for_device or close is None:
        return False
    words = unit.texts[index + 2 : close]
    return not any(VECTOR.fullmatch(word) or word in context.project.vectors for word in words)


def _begins(unit: Unit, first: int) -> bool:
    """Whether a declaration can begin at token `first`."""
    if first == 0 or unit.text(first - 1) in (b";", b"{", b"}"):
        return True
    return unit.directive_at(first - 1) is not None
