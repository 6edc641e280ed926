"""Pieces of the compat header: what a rename cannot carry, as C and C++ for one HIP release.

`CUdeviceptr` is an integer in CUDA and a pointer in HIP. The header keeps it an integer, of 64 bits
as in CUDA, and wraps each call that takes one; the wrappers are made from the prototypes of both
sides and cast every argument to the type HIP declares. Calls that take other arguments on the two
sides are written by hand in `data/compat.toml`. Only the pieces that a tree uses are written.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from port.hipify import flags, naming, signature
from port.hipify.piece import Piece
from port.hipify.signature import Fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Mapping as Dict

    from port.hipify.mapping import Mapping
    from port.hipify.tables import Declaration

ADDRESS = "portDrvDeviceptr_t"
# Structures that hold a device address; the header has its own with the address as an integer.
_COPIED = {
    "CUDA_MEMCPY2D": "portDrvMemcpy2D_t",
    "CUDA_MEMCPY3D": "portDrvMemcpy3D_t",
    "CUDA_MEMSET_NODE_PARAMS": "portDrvMemsetNodeParams_t",
}
_CORE_HEADERS = frozenset({"cuda.h", "cuda_runtime_api.h", "cudaGL.h", "cuda_gl_interop.h"})
# Entry points for one default stream a thread: nobody names them, a compiler option chooses them.
_STREAM_SUFFIXES = ("_ptsz", "_ptds")
_ADDRESS_NAMES = frozenset({"CUdeviceptr", "CUdeviceptr_v2"})
_OWN = frozenset({"CUdeviceptr", *_COPIED})
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLACE = re.compile(r"@(\w+)@")
_TAG = re.compile(r"\b(?:struct|enum|union)\s+")
# HIP declares them for C++ alone, the last one up to 5.2.
_CXX_ONLY = frozenset({"hipTexRef", "textureReference", "surfaceReference", "hipLimit_t"})
KEYWORDS = frozenset(
    {"const", "void", "char", "int", "unsigned", "long", "short", "float", "double", "size_t"}
    | {"signed", "bool", "uint32_t", "uint64_t", "int32_t", "int64_t"}
)

_ADDRESS_TEXT = f"""
typedef unsigned long long {ADDRESS};
"""


def find(name: str, mapping: Mapping) -> Piece | None:
    """The piece that carries the CUDA name `name`, or None where a rename does or nothing can."""
    if name.endswith(_STREAM_SUFFIXES):
        return None
    base = naming.base_name(name)
    if base != name and mapping.is_public_name_of(name, base):
        name = base
    written = by_hand().get(name)
    if written is not None and _in_force(written, mapping.release):
        needs = tuple(written.get("needs", ()))
        target, text = (
            _PLACE.sub(lambda match: mapping.target_of(match[1]) or match[1], written[each])
            for each in ("target", "text")
        )
        return Piece(target, text, needs, written.get("note", ""), written.get("symbol"))
    if name in _ADDRESS_NAMES:
        return Piece(ADDRESS, _ADDRESS_TEXT)
    if base in _COPIED:
        return _copied(base, mapping)
    if (flag := flags.find(name, mapping)) is not None:
        return flag
    if name.startswith("PFN_"):
        return _function_type(name, mapping)
    declared = mapping.cuda.get(name)
    if declared is None or declared.kind != "function" or declared.header not in _CORE_HEADERS:
        return None
    return _wrapper(declared, mapping)


@cache
def by_hand() -> Dict[str, Dict[str, Any]]:
    text = resources.files("port.hipify").joinpath("data", "compat.toml").read_text("utf-8")
    return tomllib.loads(text)


def _in_force(piece: Dict[str, Any], release: str) -> bool:
    version = Version(release)
    return Version(piece.get("since", "0")) <= version <= Version(piece.get("until", "99"))


def _copied(name: str, mapping: Mapping) -> Piece | None:
    """A structure with the address as an integer, and a function that fills HIP's from it.

    Members are assigned one by one: their widths and places are not the same in every release.
    """
    meant = mapping.renamed(name)
    members = mapping.hip.members(meant.target) if meant and meant.target else {}
    taken = {
        member: type_ for member, type_ in mapping.cuda.members(name).items() if member in members
    }
    spelled = {member: translated(type_, mapping) for member, type_ in taken.items()}
    if meant is None or not members or None in spelled.values():
        return None
    target = _COPIED[name]
    lines = [
        "",
        f"typedef struct {target} {{",
        *(f"  {declarator(type_ or '', member)};" for member, type_ in spelled.items()),
        f"}} {target};",
        f"static inline {meant.target} {_filler(target)}(const {target} *from) {{",
        f"  {meant.target} to;",
        "  memset(&to, 0, sizeof to);",
        *(f"  to.{member} = (__typeof__(to.{member}))from->{member};" for member in spelled),
        "  return to;",
        "}",
        "",
    ]
    return Piece(target, "\n".join(lines), ("CUdeviceptr",))


def _filler(target: str) -> str:
    return f"{target.removesuffix('_t')}Filled"


def plain(type_: str) -> str:
    return _TAG.sub("", type_)


def declarator(type_: str, name: str) -> str:
    return f"{type_}{name}" if type_.endswith("*") else f"{type_} {name}"


def _function_type(name: str, mapping: Mapping) -> Piece | None:
    """A pointer to a function of the driver: the header spells the prototype in HIP's types."""
    declared = mapping.cuda.get(name)
    seen = {name}
    while declared is not None and declared.value in mapping.cuda and declared.value not in seen:
        seen.add(declared.value)
        declared = mapping.cuda.get(declared.value)
    match = re.fullmatch(r"(.*)\(\*\)\((.*)\)", declared.value if declared else "")
    called = re.fullmatch(r"PFN_(cu(?:da)?)([A-Z]\w*)", name)
    if match is None or called is None:
        return None
    function = called[1] + naming.base_name(called[2])
    cuda = [each.strip() for each in match[2].split(",")] if match[2] else []
    spelled = _spelled(cuda, mapping.target_declaration(function), mapping)
    result = translated(match[1].strip(), mapping)
    if spelled is None or result is None:
        return None
    if any(_is_elsewhere(each, mapping) for each in (result, *spelled)):
        return None
    target = f"portPfn{called[2]}"
    text = f"\ntypedef {result} (*{target})({', '.join(spelled) or 'void'});\n"
    return Piece(target, for_its_language(text), _needs(cuda, mapping))


def for_its_language(text: str) -> str:
    """`text` for C++ alone where it names a type that HIP does not declare for C."""
    if any(each in _CXX_ONLY for each in _WORD.findall(text)):
        return f"\n#ifdef __cplusplus{text}#endif\n"
    return text


def _is_elsewhere(spelling: str, mapping: Mapping) -> bool:
    """Whether a type comes from a header that the compat header does not include."""
    declared = (mapping.hip.get(word) for word in _WORD.findall(spelling))
    return any(each is not None and each.header == "hip/hiprtc.h" for each in declared)


def _spelled(cuda: Sequence[str], called: Declaration | None, mapping: Mapping) -> list[str] | None:
    """CUDA's parameter types in HIP's names, as `called` spells them where they are the same.

    HIP's own spelling has the tags that C asks for. None where a type has no counterpart, or the
    function has none.
    """
    if called is None or called.parameters is None:
        return None
    spelled = []
    paired = called.parameters if len(called.parameters) == len(cuda) else ()
    for number, each in enumerate(cuda):
        if paired and _fit(each, paired[number], mapping) == (Fit.SAME, False):
            spelled.append(paired[number])
            continue
        text = translated(each, mapping)
        if text is None:
            return None
        spelled.append(text)
    return spelled


def _needs(spellings: Iterable[str], mapping: Mapping) -> tuple[str, ...]:
    words = {word for spelling in spellings for word in _WORD.findall(spelling)}
    found = set()
    for word in words:
        shape = signature.shape(word, mapping.cuda)
        found |= {each for each in (word, *shape.names) if _is_own_type(each)}
    return tuple(sorted({naming.base_name(each) for each in found}))


def _is_own_type(name: str) -> bool:
    return naming.base_name(name) in _OWN or name in by_hand()


def translated(spelling: str, mapping: Mapping) -> str | None:
    """The CUDA type `spelling` in HIP's names, None where one of them has no counterpart."""
    missing = False

    def rename(match: re.Match[str]) -> str:
        nonlocal missing
        word = match[0]
        if word in KEYWORDS:
            return word
        for each in signature.shape(word, mapping.cuda).names or (word,):
            if each in KEYWORDS or " " in each:
                return each
            entry = mapping.lookup(each)
            if entry is not None and entry.target:
                return entry.target
        missing = True
        return word

    text = _WORD.sub(rename, plain(spelling))
    return None if missing else text


def _wrapper(declared: Declaration, mapping: Mapping) -> Piece | None:
    """A function that casts: for calls with a device address, or with arguments HIP spells
    another way. None where the types allow the plain name, or where no cast is safe.
    """
    called = mapping.target_declaration(declared.name)
    mine = declared.parameters or ()
    if called is None or called.parameters is None or "..." in mine:
        return None
    if len(mine) != len(called.parameters) or not mapping.same_type(declared.result, called.result):
        return None
    arguments, filled, needed = [], "", False
    for number, (cuda, hip) in enumerate(zip(mine, called.parameters, strict=True)):
        fit, own = _fit(cuda, hip, mapping)
        if not _castable(fit, own, cuda, hip, mapping):
            return None
        needed = needed or own or fit in (Fit.UNCONST, Fit.CAST)
        name = _argument(number)
        copied = _copied_in(cuda, mapping)
        if copied is not None:
            filled += f"  if ({name} == NULL) return hipErrorInvalidValue;\n"
            arguments.append(f"&h{number}")
            filled += f"  {_bare(hip)} h{number} = {_filler(_COPIED[copied])}({name});\n"
        else:
            arguments.append(name if fit is Fit.SAME and not own else f"({hip}){name}")
    spelled = _spelled(mine, called, mapping)
    if not needed or spelled is None:
        return None
    symbol = called.value or called.name
    target = f"{_prefix(declared.name)}{_rest(declared.name)}"
    taken = ",\n    ".join(declarator(each, _argument(n)) for n, each in enumerate(spelled))
    text = (
        f"\nstatic inline {called.result} {target}(\n    {taken}) {{\n{filled}"
        f"  return {symbol}({', '.join(arguments)});\n}}\n"
    )
    text = for_its_language(text)
    return Piece(target, text, _needs(mine, mapping), symbol=None if filled else symbol)


def _copied_in(cuda: str, mapping: Mapping) -> str | None:
    """The structure of `_COPIED` that a parameter of type `cuda` points to."""
    names = (naming.base_name(each) for each in signature.shape(cuda, mapping.cuda).names)
    return next((name for name in names if name in _COPIED), None)


def _bare(hip: str) -> str:
    return hip.replace("*", "").removeprefix("const ").strip()


def _castable(fit: Fit, own: bool, cuda: str, hip: str, mapping: Mapping) -> bool:
    """Whether an argument passes, by a cast at most, with every bit it points to understood."""
    mine, theirs = signature.shape(cuda, mapping.cuda), signature.shape(hip, mapping.hip)
    if not own:
        return fit is not Fit.NONE and not (fit is Fit.CAST and mine.pointers != theirs.pointers)
    copied = _copied_in(cuda, mapping)
    if copied is not None:
        meant = mapping.target_of(copied)
        base = signature.shape(meant, mapping.hip).base if meant else None
        return (theirs.base, theirs.pointers, theirs.const) == (base, 1, True)
    # An address is as wide as a pointer, and so is what an address points to.
    return theirs.pointers == mine.pointers + 1 or (theirs.base, theirs.pointers) == ("void", 1)


def _fit(cuda: str, hip: str, mapping: Mapping) -> tuple[Fit, bool]:
    """How an argument passes, and whether its type is one of the header's own."""
    shape = signature.shape(cuda, mapping.cuda)
    own = any(naming.base_name(each) in _OWN for each in shape.names)
    return signature.fit(
        shape, signature.shape(hip, mapping.hip), mapping.target_of, mapping.hip
    ), own


def _argument(number: int) -> str:
    return f"a{number}"


def _prefix(name: str) -> str:
    return "portRt" if name.startswith("cuda") else "portDrv"


def _rest(name: str) -> str:
    rest = re.sub(r"^cu(da)?", "", name)
    return rest[0].upper() + rest[1:]
