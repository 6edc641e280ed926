"""Enumerations of CUDA's that HIP has no type for.

HIP declares most flags as macros, so that the enumeration has no name there. Where a tree uses that
name, the compat header declares the enumeration, and its enumerators with HIP's values: they are of
that type then, as in CUDA. A tree that uses the enumerators alone gets HIP's macros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.piece import Piece

if TYPE_CHECKING:
    from port.hipify.mapping import Mapping

_SOME, _NONE = "port_", "port_unsupported_"
# What the compat header includes declares the names of these alone.
_AT_HAND = frozenset({"hip/hip_runtime_api.h", "hip/driver_types.h"})


def find(name: str, mapping: Mapping) -> Piece | None:
    """The piece for the type or an enumerator of an enumeration of flags that the tree uses.

    None for an enumerator that HIP lacks: it has to be reported.
    """
    if not mapping.flags:
        return None
    tag = mapping.cuda.enumeration(name)
    if tag is None or tag not in mapping.flags:
        return None
    if mapping.cuda.kind(name) == "enumerator" and mapping.target_of(name) is None:
        return None
    return piece(name, tag, mapping)


def piece(name: str, tag: str, mapping: Mapping) -> Piece | None:
    """The piece for `name`, the tag, a type or an enumerator of the CUDA enumeration `tag`.

    None where a value of HIP's is out of reach, or one of CUDA's would mean another flag in HIP.
    """
    prefix = _SOME if is_partly_there(tag, mapping) else _NONE
    target = prefix + name
    lines = _enumerators(tag, mapping, prefix)
    if not lines:
        return None
    if name == tag:
        return Piece(target, f"\ntypedef enum {target} {{\n{lines}}} {target};\n")
    is_type = mapping.cuda.kind(name) == "type"
    return Piece(target, f"\ntypedef {prefix}{tag} {target};\n" if is_type else "", (tag,))


def is_partly_there(tag: str, mapping: Mapping) -> bool:
    """Whether HIP has an enumerator of the CUDA enumeration `tag`."""
    return any(mapping.target_of(name) for name in mapping.cuda.enumerators(tag))


def _enumerators(tag: str, mapping: Mapping, prefix: str) -> str:
    """Lines of the enumeration, in order of CUDA's values; empty where it cannot be declared."""
    theirs: set[int] = set()
    ours: list[int] = []
    lines = []
    ordered = sorted(mapping.cuda.enumerators(tag).items(), key=lambda each: (each[1], each[0]))
    for name, value in ordered:
        target = mapping.target_of(name)
        declared = mapping.hip.get(target) if target else None
        if declared is None:
            ours.append(value)
            lines.append(f"  {prefix}{name} = {value},\n")
            continue
        if declared.header not in _AT_HAND:
            return ""
        theirs.add(_number(declared.value, value))
        lines.append(f"  {prefix}{name} = {target},\n")
    return "" if theirs.intersection(ours) else "".join(lines)


def _number(text: str, otherwise: int) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return otherwise
