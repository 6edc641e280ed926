"""Arguments that HIP wants in another form: kernels as untyped pointers, device symbols wrapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.calls import call_at
from port.hipify.lexer import IDENT, NUMBER, STRING
from port.hipify.rewrite import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.unit import Unit


RULES: dict[str, str] = {}

_KERNEL = {
    b"cudaFuncSetAttribute": 0,
    b"cudaFuncSetCacheConfig": 0,
    b"cudaFuncSetSharedMemConfig": 0,
    b"cudaFuncGetAttributes": 1,
    b"cudaLaunchKernel": 0,
    b"cudaLaunchCooperativeKernel": 0,
}
"""Where CUDA's C++ overloads take any kernel and HIP's C function takes `const void*`."""

_SYMBOL = {
    b"cudaMemcpyToSymbol": 0,
    b"cudaMemcpyToSymbolAsync": 0,
    b"cudaMemcpyFromSymbol": 1,
    b"cudaMemcpyFromSymbolAsync": 1,
    b"cudaGetSymbolAddress": 1,
    b"cudaGetSymbolSize": 1,
    b"cudaGraphAddMemcpyNodeToSymbol": 4,
    b"cudaGraphAddMemcpyNodeFromSymbol": 5,
    b"cudaGraphMemcpyNodeSetParamsToSymbol": 1,
    b"cudaGraphMemcpyNodeSetParamsFromSymbol": 2,
    b"cudaGraphExecMemcpyNodeSetParamsToSymbol": 2,
    b"cudaGraphExecMemcpyNodeSetParamsFromSymbol": 3,
}

_NULL = frozenset((b"nullptr", b"NULL", b"0", b"__null"))
_CASTS = frozenset((b"reinterpret_cast", b"static_cast", b"const_cast"))
_C_SUFFIXES = (".c", ".h")


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Cast kernels to `const void*` and wrap device symbols, each once."""
    yield from _kernels(unit, context)
    for name, place in _SYMBOL.items():
        for index in unit.find(name):
            argument = _argument(unit, index, place)
            if argument is None:
                continue
            first = unit.text(argument[0])
            if first == b"HIP_SYMBOL" or unit.kind(argument[0]) == STRING:
                continue
            yield from _wrapped(unit, argument, b"HIP_SYMBOL(", b")")


def _kernels(unit: Unit, context: Context) -> Iterator[Edit]:
    for name, place in _KERNEL.items():
        entry = context.mapping.lookup(name.decode("utf-8", "replace"))
        if entry is None or entry.target is None:
            continue
        for index in unit.find(name):
            argument = _argument(unit, index, place)
            if argument is None or _is_pointer(unit, argument):
                continue
            if unit.path.endswith(_C_SUFFIXES) and not _is_template(unit, argument):
                yield from _wrapped(unit, argument, b"(const void *)(", b")")
            else:
                yield from _wrapped(unit, argument, b"reinterpret_cast<const void*>(", b")")


def _argument(unit: Unit, index: int, place: int) -> range | None:
    """Argument `place` of a call of an API function; None for a declaration or no call."""
    call = call_at(unit, index)
    if call is None or place >= len(call.arguments):
        return None
    argument = call.arguments[place]
    return argument or None


def _is_pointer(unit: Unit, argument: range) -> bool:
    """Whether the argument is cast already, null, or plainly a parameter of a declaration."""
    first = unit.text(argument[0])
    if first == b"HIP_SYMBOL" or (len(argument) == 1 and first in _NULL):
        return True
    if first in _CASTS:
        # A cast to a type of kernel is no cast to an untyped pointer.
        words = [unit.text(index) for index in argument]
        return b"void" in words[: words.index(b"(")] if b"(" in words else True
    if unit.kind(argument[0]) == NUMBER:
        return True
    if first == b"(" and unit.text(argument[0] + 1) in (b"const", b"void", b"char"):
        return True
    return first == b"const" or unit.text(argument[-1]) in (b"*", b"...")


def _is_template(unit: Unit, argument: range) -> bool:
    return any(unit.text(index) == b"<" and unit.kind(index - 1) == IDENT for index in argument[1:])


def _wrapped(unit: Unit, argument: range, before: bytes, after: bytes) -> Iterator[Edit]:
    start = unit.tokens.starts[argument[0]]
    end = unit.tokens.ends[argument[-1]]
    yield Edit(start, start, before)
    yield Edit(end, end, after)
