"""cuBLAS's first interface (`cublas.h`), carried by the compat header.

Its calls take no handle, scalars by value and letters for the kind of a matrix, and return results;
the names are those of the second interface, the only one that hipBLAS has. What a call of the first
takes follows from the second's prototype and from which of its pointers are scalars.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from port.hipify import compat
from port.hipify.piece import Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from port.hipify.mapping import Mapping

FIRST, SECOND = "cublas.h", "cublas_v2.h"
_PREFIX = "legacy:"
_NEED = "port_legacy_blas"
_LETTERS = {
    "cublasOperation_t": "portBlasOperation",
    "cublasFillMode_t": "portBlasFill",
    "cublasSideMode_t": "portBlasSide",
    "cublasDiagType_t": "portBlasDiagonal",
}
# By function, without the letter of its type: what each pointer of the second interface is, an
# array (a), a scalar that goes by value (s) or the result (r).
_KINDS = {
    **dict.fromkeys(("nrm2", "asum", "amax", "amin"), "ar"),
    **dict.fromkeys(("dot", "dotu", "dotc"), "aar"),
    **dict.fromkeys(("copy", "swap"), "aa"),
    **dict.fromkeys(("trmv", "trsv", "tbmv", "tbsv", "tpmv", "tpsv"), "aa"),
    **dict.fromkeys(("syr", "her", "spr", "hpr", "trsm", "trmm", "axpy"), "saa"),
    **dict.fromkeys(("syr2", "her2", "spr2", "hpr2", "ger", "geru", "gerc"), "saaa"),
    **dict.fromkeys(("gemv", "gbmv", "symv", "hemv", "sbmv", "hbmv", "spmv", "hpmv"), "saasa"),
    **dict.fromkeys(("gemm", "symm", "hemm", "syr2k", "her2k"), "saasa"),
    **dict.fromkeys(("syrk", "herk"), "sasa"),
    "scal": "sa",
    "rot": "aass",
    "rotm": "aaa",
    "rotmg": "aaaaa",
}
_NAME = re.compile(rf"cublas(?:I[sdcz]|Sc|Dz|Cs|Zd|[SDCZ])({'|'.join((*_KINDS, 'rotg'))})")
_IN_PLACE = "trmm"  # over its second matrix: the second interface has a third


class _Parameter(NamedTuple):
    """One of the second interface: its type, and which one of the first goes there."""

    type_: str
    kind: str
    """`a`, `s` or `r` as in `_KINDS`; a space for no pointer."""
    place: int


def arity(name: str, mapping: Mapping) -> int | None:
    """How many arguments the first interface's `name` takes; None for a name that it has not."""
    parameters = _parameters(name, mapping)
    return None if parameters is None else sum(each.kind != "r" for each in parameters)


def asked_for(name: str) -> str:
    """What the compat header is asked for to have the first interface's `name`."""
    return _PREFIX + name


@cache
def find(asked: str, mapping: Mapping) -> Piece | None:
    """The piece of the compat header for what `asked_for` gave; None for anything else."""
    name = asked.removeprefix(_PREFIX)
    if name == asked:
        return None
    parameters, called = _parameters(name, mapping), mapping.target_declaration(name)
    if parameters is None or called is None or not called.parameters:
        return None
    theirs = called.parameters[1:]
    if name.endswith(_IN_PLACE) and len(theirs) == len(parameters) + 2:
        given = (*parameters, *parameters[-2:])
    else:
        given = parameters
    result = next((_value(each.type_) for each in parameters if each.kind == "r"), "void")
    types = [result, *(_taken(each) for each in parameters if each.kind != "r")]
    spelled = [compat.translated(each, mapping) or "" for each in types]
    if len(theirs) != len(given) or "" in spelled:
        return None
    arguments = [_argument(each, hip) for each, hip in zip(given, theirs, strict=True)]
    target = "portBlas" + name.removeprefix("cublas")
    text = _function(target, spelled, called.value or called.name, arguments)
    return Piece(target, text, (_NEED,))


def _parameters(name: str, mapping: Mapping) -> tuple[_Parameter, ...] | None:
    declared, kinds = mapping.cuda.get(name), _kinds(name)
    if declared is None or not declared.parameters or kinds is None:
        return None
    handle, *types = declared.parameters
    if name.endswith(_IN_PLACE):
        del types[-4:-2]
    pointers = [type_.endswith("*") for type_ in types]
    if handle != "cublasHandle_t" or sum(pointers) != len(kinds):
        return None
    left = iter(kinds)
    found: list[_Parameter] = []
    for type_, pointer in zip(types, pointers, strict=True):
        place = sum(each.kind != "r" for each in found)
        found.append(_Parameter(type_, next(left) if pointer else " ", place))
    return tuple(found)


def _kinds(name: str) -> str | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if match[1] == "rotg":
        return "asaa" if name[6] in "CZ" else "aaaa"
    return _KINDS.get(match[1])


def _value(type_: str) -> str:
    return type_.removesuffix("*").removeprefix("const ").strip()


def _taken(parameter: _Parameter) -> str:
    if parameter.type_ in _LETTERS:
        return "char"
    return _value(parameter.type_) if parameter.kind == "s" else parameter.type_


def _argument(parameter: _Parameter, hip: str) -> str:
    name = f"a{parameter.place}"
    if parameter.type_ in _LETTERS:
        return f"{_LETTERS[parameter.type_]}({name})"
    if parameter.kind == "r":
        return f"({hip})&result"
    if parameter.kind == "s":
        return f"({hip})&{name}"
    return f"({hip}){name}" if parameter.kind == "a" else name


def _function(target: str, types: Sequence[str], called: str, arguments: Iterable[str]) -> str:
    result, *taken = types
    parameters = ",\n    ".join(compat.declarator(each, f"a{n}") for n, each in enumerate(taken))
    body = f"  portBlasKeep({called}({', '.join(('portBlasHandle', *arguments))}));\n"
    if result != "void":
        body = f"  {result} result;\n  memset(&result, 0, sizeof result);\n{body}  return result;\n"
    return f"\nstatic inline {result} {target}(\n    {parameters}) {{\n{body}}}\n"
