"""CUDA names that become one HIP name in a place that wants them apart."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT
from port.hipify.rules.tokens import word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"merged-names": "Two CUDA names that have to differ become one HIP name"}

_RECORDS = frozenset((b"struct", b"class", b"union", b"enum"))
_LONGEST_SIGNATURE = 80
_CLOSING = b")]}"
_BRACE = ord("{")


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Report equal case labels, overloads, specialisations and entries of list macros."""
    yield from _cases(unit, context)
    yield from _signatures(unit, context)
    yield from _lists(unit, context)


def _target(context: Context, name: str) -> str | None:
    entry = context.mapping.lookup(name)
    return entry.target if entry is not None else None


def _cases(unit: Unit, context: Context) -> Iterator[Finding]:
    for keyword in unit.find(b"switch"):
        condition = unit.partner(keyword + 1)
        if condition is None or unit.text(condition + 1) != b"{":
            continue
        closing = unit.partner(condition + 1)
        if closing is None:
            continue
        seen: dict[str, str] = {}
        for label in unit.find(b"case"):
            if not condition < label < closing or unit.text(label + 2) != b":":
                continue
            name = word(unit, label + 1)
            target = _target(context, name)
            if target is None:
                continue
            other = seen.setdefault(target, name)
            if other != name:
                yield _merged(unit, label + 1, other, target, "case labels of one switch")


def _lists(unit: Unit, context: Context) -> Iterator[Finding]:
    """`#define LIST(X) X(cuMemAlloc) X(cudaMalloc)`: whatever X makes, it makes it twice."""
    for macro in unit.macros:
        seen: dict[tuple[bytes, str], str] = {}
        for index in macro.body:
            entry = unit.text(index) in (macro.parameters or ()) and unit.text(index + 1) == b"("
            if not entry or unit.text(index + 3) not in (b")", b","):
                continue
            name = word(unit, index + 2)
            target = _target(context, name)
            if target is None:
                continue
            other = seen.setdefault((unit.text(index), target), name)
            if other != name:
                yield _merged(unit, index + 2, other, target, "entries of one list")


def _signatures(unit: Unit, context: Context) -> Iterator[Finding]:
    """Functions and specialisations that differ only by types that become one."""
    kinds = context.cuda.kinds
    types = {name for name in unit.names if kinds.get(name) in ("type", "struct", "enum")}
    if len(types) < 2:
        return
    seen: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
    for index in sorted(place for name in types for place in unit.find(name)):
        found = _declared(unit, index)
        if found is None:
            continue
        raw = _without_names(unit, *found)
        place = str(_enclosing_brace(unit, found[0])).encode()
        other = seen.setdefault((place, *(_renamed(context, text) for text in raw)), raw)
        if other != raw:
            pair = next(a for a, b in zip(other, raw, strict=True) if a != b)
            target = _target(context, word(unit, index)) or ""
            what = "overloads or specialisations"
            yield _merged(unit, index, pair.decode("latin-1"), target, what)


def _without_names(unit: Unit, first: int, last: int) -> tuple[bytes, ...]:
    """The tokens of a signature without the names of its parameters."""
    return tuple(
        unit.text(at)
        for at in range(first, last)
        if not (
            at > first
            and unit.kind(at) == IDENT
            and unit.text(at + 1) in (b",", b")", b"=")
            and (unit.kind(at - 1) == IDENT or unit.text(at - 1) in (b"*", b"&", b"&&", b">"))
        )
    )


def _renamed(context: Context, text: bytes) -> bytes:
    target = _target(context, text.decode("latin-1"))
    return target.encode() if target else text


def _enclosing_brace(unit: Unit, index: int) -> int:
    """The opening brace that `index` stands in, as a number; -1 at the top of the file."""
    brackets, marks = unit.brackets, unit.marks
    slot = bisect_left(brackets, index) - 1
    while slot >= 0:
        at = brackets[slot]
        if marks[at] in _CLOSING:
            slot = bisect_left(brackets, min(unit.partner(at) or 0, at)) - 1
        elif marks[at] == _BRACE:
            return at
        else:
            slot -= 1
    return -1


def _declared(unit: Unit, index: int) -> tuple[int, int] | None:
    """The tokens of the overload or specialisation whose parameter or argument `index` is."""
    at = index - 1
    while index - at < _LONGEST_SIGNATURE and at >= 0:
        text = unit.text(at)
        if text in (b";", b"{", b"}", b"="):
            return None
        if text in (b")", b"]"):
            at = min(unit.partner(at) or 0, at)
        elif text == b"(":
            return _function(unit, at)
        elif text == b"<" and unit.kind(at - 1) == IDENT:
            return _specialisation(unit, at)
        at -= 1
    return None


def _function(unit: Unit, opening: int) -> tuple[int, int] | None:
    """A function with a body: `type name(parameters) {`; the tokens from its name."""
    closing = unit.partner(opening)
    if closing is None or unit.kind(opening - 1) != IDENT:
        return None
    typed = unit.kind(opening - 2) == IDENT or unit.text(opening - 2) in (b"*", b"&", b">")
    after = closing + 1
    while unit.text(after) in (b"const", b"noexcept", b"override", b"final"):
        after += 1
    if not typed or unit.text(after) != b"{" or unit.text(opening - 2) in (b"return", b"else"):
        return None
    return opening - 1, closing + 1


def _specialisation(unit: Unit, opening: int) -> tuple[int, int] | None:
    """`struct Name<arguments> {`, or `type name<arguments>(parameters) {`."""
    at = opening
    depth = 0
    while at - opening < _LONGEST_SIGNATURE:
        text = unit.text(at)
        depth += (text == b"<") - (text.count(b">") if text in (b">", b">>") else 0)
        if depth <= 0:
            break
        at += 1
    if unit.text(opening - 2) in _RECORDS:
        return (opening - 1, at + 1) if unit.text(at + 1) in (b"{", b":", b"final") else None
    closing = unit.partner(at + 1) if unit.text(at + 1) == b"(" else None
    if closing is None or unit.text(closing + 1) != b"{" or unit.kind(opening - 2) != IDENT:
        return None
    return opening - 1, closing + 1


def _merged(unit: Unit, index: int, other: str, target: str, what: str) -> Finding:
    name = word(unit, index)
    return unit.finding(
        "merged-names",
        "error",
        index,
        f"{name} and {other} both become {target}, so these {what} are the same",
        "keep one of them on HIP (guard the other with #ifndef __HIP_PLATFORM_AMD__)",
    )
