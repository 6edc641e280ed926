"""Operators of a project on CUDA's vectors and halves, which HIP's have by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify import preference
from port.hipify.calls import call_at
from port.hipify.lexer import IDENT
from port.hipify.vectors import VECTOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.calls import Call
    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"vector-operator": "An operator on a vector type is one that HIP's type has, too"}

_PLAIN = frozenset((b"+", b"-", b"*", b"/", b"%", b"&", b"|", b"^", b"<<", b">>"))
_ASSIGNING = frozenset(each + b"=" for each in _PLAIN)
_STEPS = frozenset((b"++", b"--"))
_QUALIFIERS = frozenset((b"const", b"volatile", b"struct", b"&"))


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Let each operator outside of classes that takes vectors alone go before HIP's.

    Some of HIP's are no templates, so that a call fits both and the compiler takes neither.
    """
    told = False
    for index in unit.find(b"operator"):
        call = _declared(unit, index)
        if call is None or not _clashes(unit, context, index, call):
            continue
        edit = preference.before_hips(unit, index)
        if edit is None:
            continue
        yield edit
        if not told:
            told = True
            name = b"operator" + unit.text(index + 1)
            yield unit.finding(
                "vector-operator",
                "note",
                index,
                "HIP's vector types have such operators of their own, component by component; an "
                "attribute of clang's makes the compiler take the project's",
                "compile it with hipcc or clang: g++ does not know the attribute",
                name=name.decode(),
            )


def _declared(unit: Unit, index: int) -> Call | None:
    """The parameters of the operator at `index`, where it is declared outside of classes."""
    symbol = unit.text(index + 1)
    if symbol not in _PLAIN | _ASSIGNING | _STEPS or unit.text(index - 1) == b"::":
        return None
    if unit.scopes.at(index).kind not in ("file", "namespace", "function"):
        return None
    typed = unit.kind(index - 1) == IDENT or unit.text(index - 1) in (b"&", b"*", b">")
    if not typed or unit.text(index - 1) == b"return":
        return None
    return call_at(unit, index + 1)


def _clashes(unit: Unit, context: Context, index: int, call: Call) -> bool:
    """Whether the parameters are those of an operator of one of HIP's vector types."""
    types = [_vector(unit, context, each) for each in call.arguments]
    if not types or None in types or len(set(types)) != 1:
        return False
    symbol = unit.text(index + 1)
    changes = b"&" in (unit.text(each) for each in call.arguments[0])
    if symbol in _STEPS:
        return changes
    return len(types) == 2 and (changes or symbol in _PLAIN)


def _vector(unit: Unit, context: Context, parameter: range) -> bytes | None:
    """The vector type of a parameter; None for any other type."""
    words = [unit.text(each) for each in parameter if unit.text(each) not in _QUALIFIERS]
    if not 1 <= len(words) <= 2 or (len(words) == 2 and unit.kind(parameter[-1]) != IDENT):
        return None
    word = words[0]
    return word if VECTOR.fullmatch(word) or word in context.project.vectors else None
