"""Arguments that HIP's libraries take with less `const` than CUDA's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify import signature
from port.hipify.calls import calls
from port.hipify.lexer import IDENT
from port.hipify.rewrite import Edit
from port.hipify.signature import Fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.unit import Unit

RULES: dict[str, str] = {}

_LIBRARIES = (b"nvrtc", b"cublas", b"cusparse")


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Cast each argument whose type is in sight and has a `const` that HIP's parameter lacks."""
    for name in unit.names:
        if not name.startswith(_LIBRARIES):
            continue
        wanted = _less_const(name.decode("latin-1"), context)
        if not wanted:
            continue
        for call in calls(unit, name):
            for place, type_ in wanted.items():
                if place >= len(call.arguments) or not call.arguments[place]:
                    continue
                argument = call.arguments[place]
                if any(_loses(each, type_, context) for each in _types(unit, argument)):
                    yield Edit(
                        start := unit.tokens.starts[argument[0]], start, b"(%b)(" % _text(type_)
                    )
                    yield Edit(end := unit.tokens.ends[argument[-1]], end, b")")


def _less_const(name: str, context: Context) -> dict[int, str]:
    """HIP's types of the parameters of `name` that are CUDA's but for a missing `const`."""
    mapping = context.mapping
    declared, called = mapping.cuda.get(name), mapping.target_declaration(name)
    if declared is None or called is None or None in (declared.parameters, called.parameters):
        return {}
    mine, theirs = declared.parameters or (), called.parameters or ()
    if len(mine) != len(theirs):
        return {}
    shapes = (
        (signature.shape(one, mapping.cuda), signature.shape(other, mapping.hip))
        for one, other in zip(mine, theirs, strict=True)
    )
    fits = [signature.fit(*each, mapping.target_of, mapping.hip) for each in shapes]
    return {place: theirs[place] for place, fit in enumerate(fits) if fit is Fit.UNCONST}


def _loses(spelling: str, hip: str, context: Context) -> bool:
    mine = signature.shape(spelling, context.mapping.cuda)
    theirs = signature.shape(hip, context.mapping.hip)
    return mine.pointers == theirs.pointers and not mine.read_only - {0} <= theirs.read_only


def _text(type_: str) -> bytes:
    """A parameter's type as it can be cast to: an array is a pointer."""
    return (f"{type_[:-2]}*" if type_.endswith("[]") else type_).encode()


def _types(unit: Unit, argument: range) -> Iterator[str]:
    """The types in sight of an argument: what it is cast to, or what its name is declared as."""
    first = argument[0]
    closing = unit.partner(first) if unit.text(first) == b"(" else None
    if closing is not None and closing < argument[-1]:
        yield _spelled(unit, range(first + 1, closing))
    elif len(argument) == 1 and unit.kind(first) == IDENT:
        for at in unit.find(unit.text(first)):
            begin = at
            while unit.text(begin - 1) in (b"*", b"const") or unit.kind(begin - 1) == IDENT:
                begin -= 1
            array = " *" if unit.text(at + 1) == b"[" else ""
            yield _spelled(unit, range(begin, at)) + array


def _spelled(unit: Unit, tokens: range) -> str:
    return b" ".join(unit.text(each) for each in tokens).decode("latin-1")
