"""API names inside strings: a name that is looked up is renamed, one that is data is kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.calls import enclosing_call
from port.hipify.lexer import STRING
from port.hipify.rules.tokens import literal, of_kind, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {
    "string-name": "A string is the name of a CUDA function and is not looked up here",
    "symbol-name": "A CUDA function without a HIP counterpart is looked up by name",
}

_WORD = re.compile(
    r"^(?:cu|cuda|nvrtc|nvml|cublas|curand|cufft|cusparse|cusolver|nvtx|cudnn)[A-Z]\w*$"
)
_VERSION = re.compile(r"(?:_v\d+|_ptds|_ptsz)+$")
_LOOKS_UP = re.compile(
    r"dlsym|dlvsym|GetProcAddress|DriverEntryPoint|[Ss]ymbol|(?:^|_)[Ss]ym|[Ss]ym$|SYM|FindFunction"
)


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Map the string argument of a symbol look-up; report a name in any other string."""
    for index in of_kind(unit, STRING):
        text = literal(unit, index)
        if text is None or not _WORD.match(text):
            continue
        base = _VERSION.sub("", text)
        if context.cuda.kind(text) != "function" and context.cuda.kind(base) != "function":
            continue
        call = enclosing_call(unit, index)
        if call is None or not _LOOKS_UP.search(word(unit, call.name)):
            yield unit.finding(
                "string-name",
                "warning",
                index,
                f"the string is the name of the CUDA function {text}; it is kept as data",
                "if it is looked up as a symbol, pass it to the look-up itself; if other programs "
                "read it, keep it",
                name=text,
            )
            continue
        symbol = _symbol(context, text) or _symbol(context, base)
        if symbol is None:
            yield unit.finding(
                "symbol-name",
                "error",
                index,
                f"{text} is looked up by name and HIP {context.release} has no function for it",
                "guard the look-up with __HIP_PLATFORM_AMD__ or do without the function",
                name=text,
            )
            continue
        old = unit.slice(index, index + 1)
        yield unit.edit(index, index + 1, old.replace(text.encode(), symbol.encode()))


def _symbol(context: Context, name: str) -> str | None:
    """What HIP's library exports for a CUDA function."""
    entry = context.mapping.lookup(name)
    return entry.symbol if entry is not None else None
