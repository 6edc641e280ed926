"""Numbers where an enumerator is meant: HIP's enumerators have other values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.calls import call_at
from port.hipify.lexer import IDENT
from port.hipify.rules.integers import Integers
from port.hipify.rules.members import declared
from port.hipify.rules.tokens import word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {
    "enum-value": "An enumerator whose value differs in HIP is compared with a number",
    "enum-number": "A number is used where an enumerator with another value in HIP is meant",
}

_COMPARES = frozenset((b"==", b"!=", b"<", b">", b"<=", b">="))
_ENDS = frozenset((b";", b")", b",", b"?", b"&&", b"||", b"}", b"]", b":"))
_CASTS = frozenset((b"static_cast", b"reinterpret_cast"))
_REACH = 6


def rule(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """Report compared, passed and cast numbers whose meaning changes."""
    enums = _Enums(context, unit)
    kinds = context.cuda.kinds
    for name in unit.names:
        kind = kinds.get(name)
        if kind == "enumerator":
            if enums.differs(name.decode()):
                yield from _compared(unit, enums, name)
        elif kind in ("enum", "type", "struct"):
            yield from _cast(unit, enums, name)
            yield from _held(unit, context, enums, name)
        elif kind == "function":
            yield from _passed(unit, context, enums, name)


class _Enums:
    """Values on both sides, and those of the numbers and constants of one file."""

    def __init__(self, context: Context, unit: Unit) -> None:
        self._context = context
        self.unit = unit
        self._integers = Integers(unit, context.project.constants)

    def integer(self, index: int) -> int | None:
        """The value of the number at token `index`, or of a constant that is not CUDA's."""
        if self.unit.text(index) in self._context.cuda.kinds:
            return None
        return self._integers.at(index)

    def is_integer(self, index: int) -> bool:
        """Whether `integer` knows a value."""
        return self.integer(index) is not None

    def value(self, name: str) -> int | None:
        declaration = self._context.cuda.get(name)
        return _number(declaration.value) if declaration else None

    def hip_value(self, name: str) -> int | None:
        """The value of HIP's enumerator for CUDA's `name`; None where there is none."""
        entry = self._context.mapping.lookup(name)
        if entry is None or not entry.target:
            return None
        declaration = self._context.hip.get(entry.target)
        return _number(declaration.value) if declaration else None

    def differs(self, name: str) -> bool:
        """Whether both sides have a value and they differ."""
        there = self.hip_value(name)
        return there is not None and there != self.value(name)

    def enum(self, type_name: str) -> str | None:
        """The enumeration that a type name of CUDA's stands for."""
        for _ in range(4):
            type_name = type_name.removeprefix("enum ").removeprefix("const ").strip()
            declaration = self._context.cuda.get(type_name)
            if declaration is None:
                return None
            if declaration.kind == "enum":
                return declaration.name
            if declaration.kind != "type" or not declaration.value:
                return None
            type_name = declaration.value
        return None

    def meant(self, enum: str, value: int) -> str | None:
        """CUDA's enumerator with `value` where the number is another one, or nothing, in HIP."""
        name = _members(self._context, enum).get(value)
        if name is None or self.hip_value(name) == value:
            return None
        return name


def _members(context: Context, enum: str) -> dict[int, str]:
    """The first enumerator of each value."""
    found: dict[int, str] = {}
    for name, value in context.cuda.enumerators(enum).items():
        found.setdefault(value, name)
    return found


def _compared(unit: Unit, enums: _Enums, name: bytes) -> Iterator[Finding]:
    for index in unit.find(name):
        number = _beside(enums, index, 1) or _beside(enums, index, -1)
        if number is None:
            continue
        text = name.decode("utf-8", "replace")
        yield unit.finding(
            "enum-value",
            "error",
            index,
            f"{text} is compared with the number {word(unit, number)}; its value is "
            f"{enums.value(text)} in CUDA and {enums.hip_value(text)} in HIP",
            "compare with the enumerator, or translate stored numbers",
        )


def _beside(enums: _Enums, index: int, step: int) -> int | None:
    """The number that the expression around `index` is compared with, on one side."""
    unit = enums.unit
    at = index + step
    closing = (b")", b"}") if step > 0 else (b"(", b"{")
    for _ in range(_REACH):
        text = unit.text(at)
        if text in _COMPARES and not (step < 0 and text == b">"):
            break
        if text in closing or (step < 0 and _is_cast_part(unit, at)):
            at += step
            continue
        return None
    else:
        return None
    at += step
    while unit.text(at) in ((b"(", b"+") if step > 0 else (b")",)):
        at += step
    return at if enums.is_integer(at) else None


def _is_cast_part(unit: Unit, at: int) -> bool:
    """Whether a token before an enumerator is part of a cast: `static_cast<int>(` or `(int)`."""
    return unit.text(at) in (b">", b"int", b"unsigned", b"<", b"static_cast", b")", b"long")


def _cast(unit: Unit, enums: _Enums, name: bytes) -> Iterator[Finding]:
    enum = enums.enum(name.decode("latin-1"))
    if enum is None:
        return
    for index in unit.find(name):
        number = _cast_number(enums, index)
        if number is None:
            continue
        yield from _number_finding(unit, enums, enum, number, index)


def _held(unit: Unit, context: Context, enums: _Enums, name: bytes) -> Iterator[Finding]:
    """Numbers given to or compared with a variable, or a member, of an enumeration."""
    text = name.decode("latin-1")
    enum = enums.enum(text)
    members = {} if enum else context.cuda.members(text)
    if enum is None and not members:
        return
    for variable in {unit.text(at) for index in unit.find(name) for at in declared(unit, index)}:
        for index in unit.find(variable):
            last, holds = index, enum
            if members:
                if unit.text(index + 1) not in (b".", b"->"):
                    continue
                last = index + 2
                holds = enums.enum(members.get(word(unit, last), ""))
            number = last + 2
            given = unit.text(last + 1) in _COMPARES | {b"="} and enums.is_integer(number)
            if holds is None:
                continue
            if given and unit.text(number + 1) in _ENDS:
                yield from _number_finding(unit, enums, holds, number, number)
            for label in _labels(enums, index, last):
                yield from _number_finding(unit, enums, holds, label, label)


def _labels(enums: _Enums, index: int, last: int) -> Iterator[int]:
    """The numbers of `case 2:` in the switch whose condition ends with tokens [index, last]."""
    unit = enums.unit
    keyword = next((at for at in range(index, index - 10, -1) if unit.text(at) == b"switch"), -1)
    closing = unit.partner(keyword + 1) if keyword >= 0 else None
    if closing is None or not all(unit.text(at) == b")" for at in range(last + 1, closing + 1)):
        return
    end = unit.partner(closing + 1) if unit.text(closing + 1) == b"{" else None
    for label in unit.find(b"case") if end is not None else ():
        if closing < label < (end or 0) and enums.is_integer(label + 1):
            yield label + 1


def _cast_number(enums: _Enums, index: int) -> int | None:
    """The number or constant that `static_cast<E>(N)`, `(E)N`, `E(N)` or `E{N}` makes an enum."""
    unit = enums.unit
    after = index + 1
    if unit.text(after) == b">" and unit.text(after + 1) == b"(":
        start = index - 2 if unit.text(index - 1) == b"enum" else index - 1
        if unit.text(start) == b"<" and unit.text(start - 1) in _CASTS:
            return _alone(enums, after + 1)
    if unit.text(after) == b")":
        at = after + 1
        while unit.text(at) == b"(":
            at += 1
        before = unit.text(index - 1)
        opens = before == b"(" or (before == b"enum" and unit.text(index - 2) == b"(")
        return at if opens and enums.is_integer(at) else None
    if unit.text(after) in (b"(", b"{"):
        return _alone(enums, after)
    return None


def _alone(enums: _Enums, opening: int) -> int | None:
    at = opening + 1
    if enums.is_integer(at) and enums.unit.partner(opening) == at + 1:
        return at
    return None


def _passed(unit: Unit, context: Context, enums: _Enums, name: bytes) -> Iterator[Finding]:
    declaration = context.cuda.get(name.decode("latin-1"))
    if declaration is None or not declaration.parameters:
        return
    places = [(n, enums.enum(kind)) for n, kind in enumerate(declaration.parameters)]
    wanted = [(n, enum) for n, enum in places if enum is not None]
    if not wanted:
        return
    for index in unit.find(name):
        call = call_at(unit, index)
        if call is None:
            continue
        for place, enum in wanted:
            if place < len(call.arguments) and len(call.arguments[place]) == 1:
                number = call.arguments[place][0]
                if enums.is_integer(number):
                    yield from _number_finding(unit, enums, enum, number, number)


def _number_finding(
    unit: Unit, enums: _Enums, enum: str, number: int, at: int
) -> Iterator[Finding]:
    text = word(unit, number)
    value = enums.integer(number)
    name = None if value is None else enums.meant(enum, value)
    if name is None:
        return
    there = enums.hip_value(name)
    said = f"{there} in HIP" if there is not None else "not there in HIP"
    said_of = f"{text} ({value})" if unit.kind(number) == IDENT else f"the number {text}"
    yield unit.finding(
        "enum-number",
        "error",
        at,
        f"{said_of} stands for {name} of {enum}, whose value is {said}",
        f"write {name} instead of its number",
        name=text,
    )


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
