"""Members of CUDA structures whose HIP structure spells them otherwise, or lacks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT
from port.hipify.rules.tokens import word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"member-name": "A member of a CUDA structure is not in HIP's structure"}

_ACCESS = frozenset((b".", b"->"))
_AFTER_TYPE = frozenset((b"*", b"&", b"const", b"**"))
_AFTER_NAME = frozenset((b";", b"=", b",", b")", b"{", b"[", b":"))
_INITIALIZES = 400


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Rename or report members, by the declared type of what they are taken from."""
    structs = {
        name: members
        for name in unit.names
        if context.cuda.kinds.get(name) in ("struct", "type")
        and (members := context.cuda.members(name.decode("latin-1")))
        and _lacking(context, name.decode("latin-1"), members)
    }
    variables: dict[bytes, str] = {}
    for name in structs:
        struct = name.decode("latin-1")
        for index in unit.find(name):
            for variable in declared(unit, index):
                variables[unit.text(variable)] = struct
                yield from _initialized(unit, context, struct, variable + 1)
            yield from _initialized(unit, context, struct, index + 1)
    for name, struct in variables.items():
        for index in unit.find(name):
            yield from _accessed(unit, context, struct, index)
    yield from _unique(unit, context, set(variables))


def _lacking(context: Context, struct: str, members: Mapping[str, str]) -> bool:
    theirs = _hip_members(context, struct)
    return bool(theirs) and any(_top(name) and name not in theirs for name in members)


def _hip_members(context: Context, struct: str) -> Mapping[str, str]:
    entry = context.mapping.lookup(struct)
    return context.hip.members(entry.target) if entry is not None and entry.target else {}


def _top(member: str) -> bool:
    return "." not in member


def declared(unit: Unit, index: int) -> Iterator[int]:
    """Variables that are declared with the type at `index`."""
    at = index + 1
    while unit.text(at) in _AFTER_TYPE:
        at += 1
    if unit.kind(at) == IDENT and unit.text(at + 1) in _AFTER_NAME:
        yield at


def _initialized(unit: Unit, context: Context, struct: str, at: int) -> Iterator[Finding | Edit]:
    """Designated initialisers in the braces at or after `at`."""
    while unit.text(at) in (b"=", b")", b"(", struct.encode()):
        at += 1
    closing = unit.partner(at) if unit.text(at) == b"{" else None
    if closing is None or closing - at > _INITIALIZES:
        return
    index = at + 1
    while index < closing:
        if unit.text(index) in (b"{", b"(", b"["):
            index = max(unit.partner(index) or index, index)
        elif unit.text(index) == b"." and unit.text(index - 1) in (b"{", b","):
            yield from _member(unit, context, struct, index + 1)
        index += 1


def _accessed(unit: Unit, context: Context, struct: str, index: int) -> Iterator[Finding | Edit]:
    at = index + 1
    while unit.text(at) in (b"[", b"(") and unit.partner(at) is not None:
        at = (unit.partner(at) or at) + 1
    while unit.text(at) == b")":
        at += 1
    if unit.text(at) in _ACCESS:
        yield from _member(unit, context, struct, at + 1)


def _member(unit: Unit, context: Context, struct: str, index: int) -> Iterator[Finding | Edit]:
    name = word(unit, index)
    theirs = _hip_members(context, struct)
    if name in theirs or name not in context.cuda.members(struct):
        return
    spelled = _respelled(name, theirs)
    if spelled is not None:
        yield unit.edit(index, index + 1, spelled.encode())
    else:
        entry = context.mapping.lookup(struct)
        target = entry.target if entry is not None else "HIP's structure"
        yield _missing(unit, index, f"{target} of HIP {context.release}", struct)


def _respelled(name: str, theirs: Mapping[str, str]) -> str | None:
    """The one member of HIP's that differs by case, underscores or a plural s."""
    found = [other for other in theirs if _top(other) and _core(other) == _core(name)]
    return found[0] if len(found) == 1 else None


def _core(name: str) -> str:
    return name.replace("_", "").lower().rstrip("s")


def _missing(unit: Unit, index: int, where: str, struct: str) -> Finding:
    return unit.finding(
        "member-name",
        "error",
        index,
        f"{where} has no member {word(unit, index)} (it is one of {struct})",
        "guard its use with __HIP_PLATFORM_AMD__, or ask for a newer release with --rocm",
    )


_TELLING = {
    "requestedHandleTypes": "CUmemAllocationProp",
    "programmaticStreamSerializationAllowed": "cudaLaunchAttributeValue",
    "clusterSchedulingPolicyPreference": "cudaLaunchAttributeValue",
    "preferredClusterDim": "cudaLaunchAttributeValue",
    "deviceUpdatableKernelNode": "cudaLaunchAttributeValue",
    "nonPortableClusterSizeAllowed": "cudaFuncAttributes",
    "nvSciSyncObj": "cudaExternalSemaphoreHandleDesc",
    "sparseCudaArraySupported": "cudaDeviceProp",
    "deferredMappingCudaArraySupported": "cudaDeviceProp",
}
"""Members that can only be CUDA's, whatever file declares the variable, and their structure."""


def _unique(unit: Unit, context: Context, seen: set[bytes]) -> Iterator[Finding | Edit]:
    """`x.requestedHandleTypes` where the type of x is declared in another file."""
    for name, struct in _TELLING.items():
        for index in unit.find(name.encode()):
            known = unit.text(index - 1) not in _ACCESS or unit.text(index - 2) in seen
            if known or unit.text(index - 2) in (b"{", b","):
                continue
            yield from _member(unit, context, struct, index)
