"""What stands for names of CUDA's that HIP lacks, so that the code around them compiles.

A function that HIP lacks becomes one that returns `hipErrorNotSupported`, which CUDA's own may
return as well; a type becomes one that only such functions take; an enumerator becomes a number
that HIP does not use; a version is 0, as a condition takes it. Every place is reported as an error
all the same: what needs the name does not work. Functions and types are served for the driver's and
the runtime's own interface, and for NVML, whose calls return `NVML_ERROR_NOT_SUPPORTED`.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from port.hipify import compat, flags, signature
from port.hipify.piece import Piece

if TYPE_CHECKING:
    from port.hipify.mapping import Entry, Mapping
    from port.hipify.tables import Declaration

_PREFIX = "port_unsupported_"
_VERSION = re.compile(r"\w+_(?:VERSION|VER_[A-Z]+)|CUDNN_(?:MAJOR|MINOR|PATCHLEVEL)")
_HEADERS = frozenset(
    {"cuda.h", "cuda_runtime_api.h", "driver_types.h", "cudaGL.h", "cudaProfiler.h", "nvml.h"}
)
_RESULTS = {
    "CUresult": "hipErrorNotSupported",
    "cudaError_t": "hipErrorNotSupported",
    "nvmlReturn_t": f"{_PREFIX}NVML_ERROR_NOT_SUPPORTED",
    "const char *": '"not supported"',
}
_MACRO_NUMBERS = frozenset({"nvml.h"})  # headers whose constants mean something to stand-ins alone
_NUMBER = re.compile(r"\(? ?(-?(?:0x[0-9a-fA-F]+|\d+)[uUlL]*) ?\)?")
_STRUCTURE_VERSION = re.compile(r"NVML_STRUCT_VERSION \( (\w+) , (\d+) \)")
_OPENGL = {"GLuint": "unsigned int", "GLenum": "unsigned int"}  # by OpenGL's own definition
_WORD = re.compile(r"[A-Za-z_]\w*")
_POINTER = re.compile(r"(?:struct |enum |union )?(\w+)( \*)?")
_ARRAY = re.compile(r"(.*?)((?:\[\d+\])+)")

_OFFSETS = {"hipDeviceAttribute_t": 32_000, "hipError_t": 1_055}
"""What is added to CUDA's number: past every value that HIP uses (20,000 and 1,054 are its largest)
and within the bits of the enumeration."""
_LARGEST = {"hipDeviceAttribute_t": 32_767, "hipError_t": 2_047}
_OUTCOMES = {
    "hipDeviceAttribute_t": ", so asking for it fails with hipErrorInvalidValue",
    "hipError_t": ", so no call returns it",
}
_STATUS = re.compile(r"(?:Status|Result)(?:_t)?$")
_FAR = 1 << 20  # past the values of every other enumeration of HIP's


def number(name: str, mapping: Mapping) -> str | None:
    """The constant for an enumerator that HIP's own enumeration lacks, or for a macro of NVML's."""
    declared = mapping.cuda.get(name)
    if declared is not None and declared.kind == "macro" and declared.header in _MACRO_NUMBERS:
        constant = _NUMBER.fullmatch(declared.value)
        return constant[1] if constant else None
    if declared is None or declared.kind != "enumerator":
        return None
    target = mapping.target_of(declared.result)
    value = mapping.cuda.enumerators(declared.result).get(name)
    if target is None or value is None:
        return None
    offset = _OFFSETS.get(target)
    if offset is not None:
        value += offset
        return f"(({target}){value})" if value <= _LARGEST[target] else None
    taken = frozenset(mapping.hip.enumerators(mapping.hip.enumeration(target) or target).values())
    if not taken:
        return None
    if _STATUS.search(target):
        value = _unused_status(declared.result, value, taken, mapping)
    elif value in taken:
        value += _FAR
    return f"(({target}){value})"


def _unused_status(enumeration: str, value: int, taken: frozenset[int], mapping: Mapping) -> int:
    """What stands for `value` of what calls return: it can be a label of a `switch`.

    A label has to be among the values that the bits of the largest one in `taken` can hold.
    """
    end = 1 << max(taken).bit_length()
    values = mapping.cuda.enumerators(enumeration)
    lacking = sorted({values[each] for each in values if mapping.target_of(each) is None})
    kept = {each for each in lacking if 0 <= each < end} - taken
    if value in kept:
        return value
    place = [each for each in lacking if each not in kept].index(value)
    free = (each for each in range(end) if each not in taken and each not in kept)
    return next(islice(free, place, None), value + _FAR)


def find(name: str, mapping: Mapping) -> Piece | None:
    """The piece of the compat header that stands for `name`, None where nothing can.

    `name` is one of CUDA's without a target. `Mapping.stand_in` keeps the answers.
    """
    declared = mapping.cuda.get(name)
    if declared is not None and declared.kind == "macro" and _VERSION.fullmatch(name):
        return _version(name)
    if declared is None or declared.header not in _HEADERS:
        return None
    tag = mapping.cuda.enumeration(name)
    if tag is not None:
        return flags.piece(name, tag, mapping)
    if declared.kind == "function":
        return _function(declared, mapping)
    if declared.kind == "macro":
        return _structure_version(declared, mapping)
    if declared.kind == "type":
        return _type(declared, mapping)
    if declared.kind == "struct":
        return _structure(declared, mapping)
    return None


def effect(entry: Entry, value: str | None) -> str:
    """What a place with the stand-in for `entry` does; `value` is its `number`, if it has one."""
    if value is not None and entry.kind != "macro":
        outcome = next((text for kind, text in _OUTCOMES.items() if kind in value), "")
        return f"a number that HIP does not use stands for it{outcome}"
    if entry.kind == "function":
        own = entry.name.startswith("nvml")
        result = "NVML_ERROR_NOT_SUPPORTED" if own else "hipErrorNotSupported"
        return f"a function that returns {result} stands for it"
    if entry.kind in ("enumerator", "macro"):
        return "CUDA's number stands for it, which no HIP call knows"
    return "a type that only other stand-ins take stands for it"


def _version(name: str) -> Piece:
    """What a condition takes an undefined version for, unless the build says what it is."""
    target = _PREFIX + name
    return Piece(target, f"\n#ifndef {target}\n#define {target} 0\n#endif\n")


def _structure_version(declared: Declaration, mapping: Mapping) -> Piece | None:
    """What the first member of a versioned structure has to be."""
    match = _STRUCTURE_VERSION.fullmatch(declared.value)
    structure = f"nvml{match[1]}_v{match[2]}_t" if match else ""
    piece = mapping.stand_in(structure)
    if match is None or piece is None:
        return None
    target = _PREFIX + declared.name
    text = f"\n#define {target} ((unsigned int)sizeof({piece.target}) | {match[2]}u << 24)\n"
    return Piece(target, text, (structure,))


def _function(declared: Declaration, mapping: Mapping) -> Piece | None:
    """A function that fails in its library's own way, whatever the arguments."""
    if declared.result not in _RESULTS or declared.parameters is None:
        return None
    needs: set[str] = set()
    result = _spelled(declared.result, mapping, needs)
    spelled = [_spelled(each, mapping, needs) for each in declared.parameters]
    if "..." in declared.parameters or None in (result, *spelled):
        return None
    target = _PREFIX + declared.name
    taken = ",\n    ".join(_declarator(each or "", f"a{n}") for n, each in enumerate(spelled))
    unused = "".join(f"  (void)a{n};\n" for n in range(len(spelled)))
    text = (
        f"\nstatic inline {_declarator(result or '', target)}(\n    {taken or 'void'}) {{\n{unused}"
        f"  return {_RESULTS[declared.result]};\n}}\n"
    )
    return Piece(target, compat.for_its_language(text), tuple(sorted(needs)))


def _type(declared: Declaration, mapping: Mapping) -> Piece | None:
    """A typedef: of a structure or a pointer to one, or of a function."""
    target = _PREFIX + declared.name
    needs: set[str] = set()
    plain = _POINTER.fullmatch(declared.value)
    if plain:
        under = _spelled(plain[1], mapping, needs)
        if under is None:
            return None
        text = f"\ntypedef {_declarator(under + (plain[2] or ''), target)};\n"
        return Piece(target, text, tuple(sorted(needs)))
    if "(*)(" not in declared.value:
        return None
    value = _spelled(declared.value, mapping, needs)
    if value is None:
        return None
    text = f"\ntypedef {value.replace('(*)', f'(*{target})', 1)};\n"
    return Piece(target, text, tuple(sorted(needs)))


def _structure(declared: Declaration, mapping: Mapping) -> Piece | None:
    """A structure with CUDA's members, or none where it is behind a handle.

    None where a member has no name of its own type: the table does not tell structures from unions.
    """
    target = _PREFIX + declared.name
    members = mapping.cuda.members(declared.name)
    if any("." in name or type_ in ("struct", "union") for name, type_ in members.items()):
        return None
    needs: set[str] = set()
    spelled = {name: _spelled(type_, mapping, needs) for name, type_ in members.items()}
    if None in spelled.values():
        return None
    body = "".join(f"  {_declarator(type_ or '', name)};\n" for name, type_ in spelled.items())
    held = f" {{\n{body}}}" if members else ""
    return Piece(target, f"\ntypedef struct {target}{held} {target};\n", tuple(sorted(needs)))


def _spelled(spelling: str, mapping: Mapping, needs: set[str]) -> str | None:
    """A CUDA type in HIP's names and in those of stand-ins; `needs` gets what those are for."""
    missing = False

    def rename(match: re.Match[str]) -> str:
        nonlocal missing
        word = match[0]
        if word in compat.KEYWORDS:
            return word
        if word in _OPENGL:
            return _OPENGL[word]
        for each in signature.shape(word, mapping.cuda).names:
            if each in compat.KEYWORDS or " " in each:
                return each
            entry = mapping.lookup(each)
            if entry is not None and entry.target:
                if entry.carried:
                    needs.add(each)
                return entry.target
        piece = mapping.stand_in(word)
        if piece is None:
            missing = True
            return word
        needs.add(word)
        return piece.target

    text = _WORD.sub(rename, compat.plain(spelling))
    return None if missing else text


def _declarator(type_: str, name: str) -> str:
    array = _ARRAY.fullmatch(type_)
    if array:
        return f"{array[1]} {name}{array[2]}"
    return f"{type_}{name}" if type_.endswith("*") else f"{type_} {name}"
