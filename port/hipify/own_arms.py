"""Conditions with an arm behind them that the project has for HIP itself.

What they ask for is CUDA's, which no HIP build defines: left as they are, they lead to that arm.
With HIP's names in them the CUDA arm would be taken, which comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT

if TYPE_CHECKING:
    from port.hipify.preprocess import Branch, Directive
    from port.hipify.unit import Unit

UNDEFINED = frozenset({b"__CUDACC__", b"__CUDA_ARCH__", b"__NVCC__"})
"""Macros of the CUDA compiler's own that stay undefined there."""

_COMPILER = (b"__HIP__", b"__HIPCC__", b"__HIP_DEVICE_COMPILE__")
_PLATFORM = b"__HIP_PLATFORM_AMD__"
_COMPARISONS = (b"<", b">", b"<=", b">=", b"==", b"!=")
_CHOOSING = frozenset({b"if", b"ifdef", b"elif", b"elifdef"})


def find(unit: Unit) -> frozenset[int]:
    """The names that such conditions ask for, and do not deny, by token.

    Inside of a later arm only the compiler's macros tell that HIP's code is to get there: what
    calls the API alone asks for the platform, in an arm for the host of either.
    """
    ahead: set[Directive] = set()
    seen: set[Branch] = set()
    for branch in unit.branches:
        if not _asks(unit, branch.directive, (*_COMPILER, _PLATFORM)):
            continue
        ahead.update(branch.earlier)
        step = branch.parent if _asks(unit, branch.directive, _COMPILER) else None
        while step is not None and step not in seen:
            seen.add(step)
            ahead.update(step.earlier)
            step = step.parent
    return frozenset(
        index
        for directive in ahead
        if directive.name in _CHOOSING
        for index in _asked(unit, directive)
    )


def _asks(unit: Unit, directive: Directive, names: tuple[bytes, ...]) -> bool:
    if directive.name not in _CHOOSING:
        return False
    asked = _asked(unit, directive)
    return any(unit.text(index) in names for index in asked)


def _asked(unit: Unit, directive: Directive) -> list[int]:
    """The names of a condition that are not denied, and not compared: 0 may be what is wanted."""
    asked = []
    index = directive.body.start
    while index < directive.body.stop:
        if unit.text(index) == b"!":
            index = _past_operand(unit, index + 1)
            continue
        compared = unit.text(index - 1) in _COMPARISONS or unit.text(index + 1) in _COMPARISONS
        if unit.kind(index) == IDENT and unit.text(index) != b"defined" and not compared:
            asked.append(index)
        index += 1
    return asked


def _past_operand(unit: Unit, index: int) -> int:
    while unit.text(index) in (b"!", b"defined"):
        index += 1
    return (unit.partner(index) or index) + 1
