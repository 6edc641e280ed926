"""Names that macros make by pasting CUDA's to a piece of their own: `hook_##name` of `cudaFree`.

Where the tree spells such a name out (`hook_cudaFree`), it has to become what the macro makes of
HIP's name, and so has every macro that makes the same names. Where two of CUDA's names become one
of HIP's, one name would be made twice, so that all but one of them stay.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from port.hipify.calls import enclosing_call
from port.hipify.lexer import IDENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from port.hipify.facts import Facts
    from port.hipify.mapping import Mapping as Names
    from port.hipify.unit import Unit

_CORE = re.compile(rb"(?<![A-Za-z0-9])(?:cu(?:da)?|hip)[A-Z][A-Za-z0-9]*(?:_v\d)?")
_AROUND = (b"(", b",", b")")


class Pasted(NamedTuple):
    """What becomes of a tree's pasted names."""

    kept: frozenset[bytes] = frozenset()
    """CUDA's names that stay where such a macro is given them."""
    given: frozenset[bytes] = frozenset()
    """CUDA's names that become HIP's own, without a wrapper, where such a macro is given them."""
    renamed: Mapping[bytes, bytes] = {}
    """The project's names that are spelled out, and what they become."""
    macros: frozenset[tuple[bytes, bytes]] = frozenset()
    """(macro, number of the argument) of those that make them."""

    def is_given(self, unit: Unit, index: int) -> bytes | None:
        """The pasting macro that token `index` is an argument of by itself."""
        call = _given(unit, index) if self.macros else None
        return call[0] if call in self.macros and call is not None else None


def macros(unit: Unit) -> Iterator[tuple[bytes, bytes, bytes, bytes]]:
    """(macro, number of the parameter, piece before it, piece after it) of each pasting."""
    for macro in unit.macros:
        for index in macro.body if macro.parameters else ():
            text = unit.text(index)
            if text not in (macro.parameters or ()):
                continue
            before = unit.text(index - 2) if unit.text(index - 1) == b"##" else b""
            after = unit.text(index + 2) if unit.text(index + 1) == b"##" else b""
            pieces = {before, after} - {b""}
            if pieces and not pieces & set(macro.parameters or ()):
                number = (macro.parameters or ()).index(text)
                yield macro.name, b"%d" % number, before, after


def arguments(unit: Unit, name: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """(macro or function, number of the argument, `name`) of each call that is given the name."""
    for index in unit.find(name):
        call = _given(unit, index)
        if call is not None:
            yield *call, name


def _given(unit: Unit, index: int) -> tuple[bytes, bytes] | None:
    if unit.text(index - 1) not in _AROUND[:2] or unit.text(index + 1) not in _AROUND[1:]:
        return None
    call = enclosing_call(unit, index)
    if call is None or unit.kind(call.name) != IDENT:
        return None
    number = next((n for n, each in enumerate(call.arguments) if each[0] == index), None)
    return None if number is None else (unit.text(call.name), b"%d" % number)


def core(name: bytes) -> bytes | None:
    """The name like CUDA's, or like HIP's, that `name` is longer than."""
    match = _CORE.search(name)
    return match[0] if match and match[0] != name else None


def resolve(facts: Mapping[str, Facts], names: Names) -> Pasted:
    """What becomes of the names that the macros of the tree make."""
    pieces: dict[tuple[bytes, bytes], set[tuple[bytes, bytes]]] = {}
    for each in facts.values():
        for macro, number, before, after in each.pastes:
            pieces.setdefault((macro, number), set()).add((before, after))
    if not pieces:
        return Pasted()
    passed: dict[tuple[bytes, bytes], set[bytes]] = {}
    for each in facts.values():
        for macro, number, name in each.passed:
            if (macro, number) in pieces:
                passed.setdefault((macro, number), set()).add(name)
    spelled = frozenset(name for each in facts.values() for name in each.longer)
    kept: set[bytes] = set()
    renamed: dict[bytes, dict[bytes, bytes]] = {}
    spelling: set[tuple[bytes, bytes]] = set()
    for places in _joined(pieces):
        around = {piece for place in places for piece in pieces[place]}
        given = {name for place in places for name in passed.get(place, ())}
        if not any(b + name + a in spelled for name in given for b, a in around):
            continue
        spelling.update(places)
        first: dict[bytes, bytes] = {}
        for name in sorted(given, key=_rank):
            target = name if name.startswith(b"hip") else _target(name, names)
            if not target or first.setdefault(target, name) != name:
                kept.add(name)
            if target == name or name in kept:
                continue
            made = {b + name + a: b + target + a for b, a in around if b + name + a in spelled}
            renamed.setdefault(name, {}).update(made)
    return Pasted(
        frozenset(kept),
        frozenset(renamed) - kept,
        {old: new for name in renamed.keys() - kept for old, new in renamed[name].items()},
        frozenset(spelling),
    )


def _joined(
    pieces: Mapping[tuple[bytes, bytes], set[tuple[bytes, bytes]]],
) -> Iterator[list[tuple[bytes, bytes]]]:
    """The places of `pieces`, those together that make a name of the same pieces."""
    makers: dict[tuple[bytes, bytes], list[tuple[bytes, bytes]]] = {}
    for place, around in pieces.items():
        for piece in around:
            makers.setdefault(piece, []).append(place)
    seen: set[tuple[bytes, bytes]] = set()
    for place in pieces:
        joined: list[tuple[bytes, bytes]] = []
        waiting = [place]
        while waiting:
            other = waiting.pop()
            if other not in seen:
                seen.add(other)
                joined.append(other)
                waiting += [maker for piece in pieces[other] for maker in makers.pop(piece, ())]
        if joined:
            yield joined


def _rank(name: bytes) -> tuple[bool, bool, int, bytes]:
    """Which of several names is the one that HIP has: its own, else the runtime's."""
    return not name.startswith(b"hip"), not name.startswith(b"cuda"), len(name), name


def _target(name: bytes, names: Names) -> bytes:
    return (names.target_of(name.decode()) or "").encode()
