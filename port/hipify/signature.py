"""Compare a CUDA prototype, in HIP's names, with the prototype that HIP declares.

The comparison is about what a call site would see: whether an argument of CUDA's type can be
passed as it is, needs a cast that keeps every bit, or cannot be passed at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from port.hipify.tables import Table

_WORD = re.compile(r"[A-Za-z_]\w*")
_HANDLE = re.compile(r"(\w+) \*")
_TAGS = re.compile(r"\b(?:enum|struct|union|__device_builtin__|volatile|restrict)\s+")
# Integer types of the x86-64 and aarch64 Linux ABI: bits, and whether they are signed.
_INTEGERS = {
    "char": (8, True),
    "signed char": (8, True),
    "unsigned char": (8, False),
    "bool": (8, False),
    "short": (16, True),
    "unsigned short": (16, False),
    "int": (32, True),
    "unsigned int": (32, False),
    "unsigned": (32, False),
    "int32_t": (32, True),
    "uint32_t": (32, False),
    "long": (64, True),
    "unsigned long": (64, False),
    "long long": (64, True),
    "unsigned long long": (64, False),
    "int64_t": (64, True),
    "uint64_t": (64, False),
    "size_t": (64, False),
    "uintptr_t": (64, False),
}
_RENAMING = frozenset({"type", "struct", "enum"})
_RESOLVE_DEPTH = 8


class Fit(IntEnum):
    """How a CUDA argument passes for a HIP parameter; the larger, the worse.

    UNCONST is a cast that takes a `const` away and changes nothing else.
    """

    SAME = 0
    IMPLICIT = 1
    UNCONST = 2
    CAST = 3
    NARROW = 4
    NONE = 5


@dataclass(frozen=True, slots=True)
class Shape:
    """A type taken apart: the name at the bottom, pointer levels, and which of them are read only.

    Level 0 is the value itself, level 1 what it points to, and so on. `names` are the names that
    typedefs led through, the spelled one first, `base` last.
    """

    base: str
    pointers: int
    read_only: frozenset[int]
    names: tuple[str, ...] = ()
    spelled_pointers: int = 0

    @property
    def const(self) -> bool:
        """Whether what is at the bottom is read only."""
        return self.pointers in self.read_only

    @property
    def integer(self) -> tuple[int, bool] | None:
        return _INTEGERS.get(self.base) if self.pointers == 0 else None


@cache
def shape(spelling: str, table: Table) -> Shape:
    """Take `spelling` apart, typedefs of `table` resolved down to a name that stands for itself."""
    text, pointers, names = _TAGS.sub("", spelling), 0, list[str]()
    read_only = set[int]()
    spelled = 0
    for _ in range(_RESOLVE_DEPTH):
        text = text.strip()
        while text.endswith("]"):
            text, pointers = text[: text.rindex("[")].strip(), pointers + 1
        while text.endswith(("*", "const", "__restrict")):
            word = next(end for end in ("*", "const", "__restrict") if text.endswith(end))
            text = text.removesuffix(word).strip()
            pointers += word == "*"
            if word == "const":
                read_only.add(pointers)
        if text.startswith("const "):
            text = text.removeprefix("const ").strip()
            read_only.add(pointers)
        if not names:
            spelled = pointers
        names.append(text)
        if text in _INTEGERS:
            break
        declared = table.get(text)
        if declared is None or declared.kind not in _RENAMING or not declared.value:
            break
        under = _TAGS.sub("", declared.value)
        if "(" in under:
            break
        opaque = _HANDLE.fullmatch(under)
        if opaque and opaque[1] not in {"void", "char"}:
            break
        text = under
    return Shape(text, pointers, frozenset(read_only), tuple(names), spelled)


def fit(cuda: Shape, hip: Shape, renamed: Callable[[str], str | None], hips: Table) -> Fit:
    """How an argument of the shape `cuda` passes for a parameter of the shape `hip`.

    `renamed` gives the HIP name of a CUDA name; `hips` is the table of HIP's names.
    """
    if _same(cuda, hip, renamed, hips):
        kept = not hip.pointers or cuda.read_only - {0} <= hip.read_only
        return Fit.SAME if kept else Fit.UNCONST
    if cuda.pointers == 0 and hip.pointers == 0:
        if cuda.integer and hip.integer:
            return Fit.IMPLICIT if hip.integer[0] >= cuda.integer[0] else Fit.NARROW
        if hips.kind(hip.base) == "enum" or hip.base.startswith("hip"):
            return Fit.CAST if cuda.integer else Fit.NONE
        return Fit.NONE
    if cuda.pointers and hip.pointers:
        if (hip.base, hip.pointers) == ("void", 1) and (hip.const or not cuda.const):
            return Fit.IMPLICIT
        if {cuda.base, hip.base} & {"void"} or _same_width(cuda, hip):
            return Fit.CAST
    return Fit.NONE


def _same(cuda: Shape, hip: Shape, renamed: Callable[[str], str | None], hips: Table) -> bool:
    if cuda.pointers == hip.pointers:
        mine, theirs = _INTEGERS.get(cuda.base), _INTEGERS.get(hip.base)
        if mine is not None and theirs is not None:
            return mine == theirs and (cuda.pointers == 0 or _rank(cuda.base) == _rank(hip.base))
        if cuda.base == hip.base:
            return True
    for name in cuda.names:
        target = renamed(name)
        if target is None:
            continue
        meant = shape(target, hips)
        levels = meant.pointers + cuda.pointers - _levels_below(cuda, name)
        if meant.base == hip.base and levels == hip.pointers:
            return True
        # A handle that HIP's prototype spells as the pointer that it is.
        handle = hips.get(meant.base)
        pointed = _HANDLE.fullmatch(handle.value) if handle is not None else None
        if pointed and pointed[1] == hip.base and levels + 1 == hip.pointers:
            return True
    return False


def _levels_below(cuda: Shape, name: str) -> int:
    """Pointer levels that the typedefs after `name` added; opaque handles stop before theirs."""
    return 0 if name == cuda.names[-1] else max(0, cuda.pointers - cuda.spelled_pointers)


def _same_width(cuda: Shape, hip: Shape) -> bool:
    mine, theirs = _INTEGERS.get(cuda.base), _INTEGERS.get(hip.base)
    return cuda.pointers == hip.pointers and None not in (mine, theirs) and mine[0] == theirs[0]  # type: ignore[index]


def _rank(base: str) -> str:
    """C++ tells `unsigned long *` from `unsigned long long *`."""
    same = {"size_t": "unsigned long", "uint64_t": "unsigned long", "int64_t": "long"}
    same |= {"uint32_t": "unsigned int", "int32_t": "int", "uintptr_t": "unsigned long"}
    same |= {"unsigned": "unsigned int"}
    return same.get(base, base)
