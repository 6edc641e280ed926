"""A warp of CUDA has 32 lanes, a wavefront of CDNA has 64: masks, lane numbers and widths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.calls import call_at
from port.hipify.lexer import IDENT, NUMBER
from port.hipify.rewrite import Edit
from port.hipify.rules.tokens import of_kind, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.unit import Unit


RULES = {
    "warp-mask": "A mask of lanes has 32 bits where HIP wants 64",
    "warp-width": "The number of lanes of a warp is written as a number",
}

_TAKES_MASK = (
    b"__shfl_sync",
    b"__shfl_up_sync",
    b"__shfl_down_sync",
    b"__shfl_xor_sync",
    b"__ballot_sync",
    b"__any_sync",
    b"__all_sync",
    b"__match_any_sync",
    b"__match_all_sync",
    b"__reduce_add_sync",
    b"__reduce_min_sync",
    b"__reduce_max_sync",
    b"__reduce_and_sync",
    b"__reduce_or_sync",
    b"__reduce_xor_sync",
    b"__syncwarp",
)
_DEVICE_WORDS = (b"__global__", b"__device__", b"threadIdx")
_SHUFFLES = frozenset(_TAKES_MASK[:4]) | frozenset(
    (b"__shfl", b"__shfl_up", b"__shfl_down", b"__shfl_xor")
)
_GIVES_MASK = (
    b"__ballot_sync",
    b"__ballot",
    b"__activemask",
    b"__match_any_sync",
    b"__match_all_sync",
)
_NARROW_BITS = frozenset((b"__popc", b"__ffs", b"__clz", b"__brev"))
_NARROW_TYPES = frozenset((b"int", b"unsigned", b"uint", b"uint32_t", b"int32_t", b"u32"))
_FULL = re.compile(rb"^0[xX](?:[fF]{8})[uUlL]*$")
_WIDE = re.compile(rb"^0[xX][0-9a-fA-F]{9,16}[uUlL]*$|^[0-9]+[uU]?[lL]{1,2}[uU]?$")
_WIDE_MASK = b"0xffffffffffffffffull"
_LAST = re.compile(rb"^(?:31|0x1[fF])[uU]?$")
_OF_WARPS = frozenset((b"<<", b"*"))
_OPERATORS = {
    b"&": re.compile(rb"^(?:31|0x1[fF])[uU]?$"),
    b"%": re.compile(rb"^(?:32|0x20)[uU]?$"),
    b"/": re.compile(rb"^(?:32|0x20)[uU]?$"),
    b">>": re.compile(rb"^5[uU]?$"),
    b"<<": re.compile(rb"^5[uU]?$"),
    b"*": re.compile(rb"^(?:32|0x20)[uU]?$"),
    b"==": _LAST,
    b"!=": _LAST,
    b"<": re.compile(rb"^(?:32|0x20)[uU]?$"),
}
_LANE_NAME = re.compile(
    r"(?:^|_)(?:tid|lane|lane_?id|thread_?(?:id|idx|index)|tx)(?:$|_)", re.IGNORECASE
)
_WARP_NAME = re.compile(
    r"warp.*(?:size|width|threads|lanes)|(?:size|width|threads|lanes).*warp|^k?_?warp_?$",
    re.IGNORECASE,
)
_COMPARES = frozenset((b"==", b"!=", b"<", b">="))
_THIRTY_TWO = re.compile(rb"^(?:32|0x20)[uUlL]*$")
_LOOP_REACH = 80


def rule(unit: Unit, _context: Context) -> Iterator[Finding | Edit]:
    """Widen full masks; warn of every other mask, width and lane number of 32."""
    yield from _masks(unit)
    yield from _results(unit)
    if unit.is_kernel_file or any(unit.find(word) for word in _DEVICE_WORDS):
        yield from _numbers(unit)
        yield from _counts(unit)
        yield from _constants(unit)
        yield from _halving_loops(unit)


def _masks(unit: Unit) -> Iterator[Finding | Edit]:
    for name in _TAKES_MASK:
        for index in unit.find(name):
            call = call_at(unit, index)
            if call is None or not call.arguments:
                continue
            mask = call.arguments[0]
            if not mask or _is_declaration(unit, mask) or _is_wide(unit, mask):
                continue
            start, end = unit.tokens.starts[mask[0]], unit.tokens.ends[mask[-1]]
            if _is_full(unit, mask):
                yield Edit(start, end, _WIDE_MASK)
            else:
                yield Edit(start, start, b"(unsigned long long)(")
                yield Edit(end, end, b")")
                yield unit.finding(
                    "warp-mask",
                    "warning",
                    index,
                    f"the mask of {word(unit, index)} has 32 bits in CUDA; HIP takes 64 and a "
                    "wavefront may have 64 lanes",
                    "make the mask an unsigned long long (an alias that is unsigned in CUDA) and "
                    "build it for warpSize lanes; it is only cast here",
                )


def _is_full(unit: Unit, mask: range) -> bool:
    texts = [unit.text(index) for index in mask]
    while len(texts) > 2 and texts[0] == b"(" and texts[-1] == b")":
        texts = texts[1:-1]
    if len(texts) == 1:
        return bool(_FULL.match(texts[0])) or texts[0] == b"UINT_MAX"
    return len(texts) == 2 and (texts[0], texts[1].rstrip(b"uUlL")) in ((b"-", b"1"), (b"~", b"0"))


def _is_wide(unit: Unit, mask: range) -> bool:
    """Whether the mask has 64 bits as it is written: a long literal, or cast like ours."""
    if len(mask) == 1:
        return bool(_WIDE.match(unit.text(mask[0])))
    return [unit.text(index) for index in mask[:4]] == [b"(", b"unsigned", b"long", b"long"]


def _is_declaration(unit: Unit, mask: range) -> bool:
    """Whether the first argument is a parameter (`unsigned mask`), so the call is none."""
    if len(mask) == 1:
        return unit.text(mask[0]) in _NARROW_TYPES
    return unit.kind(mask[0]) == IDENT and unit.kind(mask[0] + 1) == IDENT


def _results(unit: Unit) -> Iterator[Finding]:
    """Lane masks that come back and are kept in 32 bits or counted with 32-bit functions."""
    for name in _GIVES_MASK:
        for index in unit.find(name):
            if call_at(unit, index) is None or index < 2:
                continue
            before = unit.text(index - 1)
            narrow = (
                before == b"="
                and index >= 3
                and unit.kind(index - 2) == IDENT
                and unit.text(index - 3) in _NARROW_TYPES
            ) or (before == b"(" and unit.text(index - 2) in _NARROW_BITS)
            if narrow:
                yield unit.finding(
                    "warp-width",
                    "warning",
                    index,
                    f"{word(unit, index)} gives 64 bits in HIP, one for each lane of a "
                    "wavefront; here they are cut to 32",
                    "keep them in an unsigned long long and count with __popcll or __ffsll",
                )


def _numbers(unit: Unit) -> Iterator[Finding]:
    threads = _thread_names(unit)
    for index in of_kind(unit, NUMBER):
        if index < 2:
            continue
        pattern = _OPERATORS.get(unit.text(index - 1))
        if pattern is None or not pattern.match(unit.text(index)):
            continue
        operator = unit.text(index - 1)
        if operator in _OF_WARPS:
            meant = _says_warp(unit, index - 2, threads)
        elif operator in _COMPARES:
            meant = unit.kind(index - 2) == IDENT and _says_lane(unit, index - 2)
        else:
            meant = _is_thread(unit, index - 2, threads)
        if not meant:
            continue
        yield unit.finding(
            "warp-width",
            "warning",
            index,
            f"{word(unit, index)} is the width of a CUDA warp here; a wavefront has 64 lanes on "
            "CDNA GPUs",
            "compute with warpSize (in device code) or with the device's warpSize property",
            name=word(unit, index),
        )


def _says_warp(unit: Unit, last: int, threads: frozenset[bytes]) -> bool:
    """Whether the operand is the number of a warp, as `warp_id`, or `w` set from threadIdx."""
    if unit.kind(last) != IDENT:
        return False
    text = unit.text(last)
    return b"warp" in text.lower() or (text.startswith(b"w") and text in threads)


def _says_lane(unit: Unit, last: int) -> bool:
    return "lane" in word(unit, last).lower()


def _counts(unit: Unit) -> Iterator[Finding]:
    """`__popc(mask) == 32`: whether all lanes are there."""
    for index in unit.find(b"__popc"):
        call = call_at(unit, index)
        if call is None:
            continue
        compared = (call.close + 2, unit.text(call.close + 1)), (index - 2, unit.text(index - 1))
        for at, operator in compared:
            if operator in _COMPARES and _THIRTY_TWO.match(unit.text(at)):
                yield unit.finding(
                    "warp-width",
                    "warning",
                    at,
                    "__popc counts 32 bits; a mask of lanes has 64 on CDNA GPUs",
                    "count the whole mask with __popcll and compare with warpSize",
                    name=word(unit, at),
                )


def _thread_names(unit: Unit) -> frozenset[bytes]:
    """Variables that are set from `threadIdx` in this file, and names that say lane or thread."""
    names = set()
    for index in unit.find(b"threadIdx"):
        at = index - 1
        while at > 0 and index - at < 40 and unit.text(at) not in (b";", b"{", b"}"):
            if unit.text(at) == b"=" and unit.kind(at - 1) == IDENT:
                names.add(unit.text(at - 1))
                break
            at -= 1
    return frozenset(names)


def _is_thread(unit: Unit, last: int, threads: frozenset[bytes]) -> bool:
    """Whether the operand that ends at token `last` is a thread number."""
    text = unit.text(last)
    if text == b")":
        depth = 0
        for at in range(last, max(0, last - 60), -1):
            inner = unit.text(at)
            depth += (inner == b")") - (inner == b"(")
            if inner == b"threadIdx" or inner in threads:
                return True
            if depth == 0:
                return False
        return False
    if unit.kind(last) != IDENT:
        return False
    if unit.text(last - 1) == b"." and unit.text(last - 2) == b"threadIdx":
        return True
    return text in threads or bool(_LANE_NAME.search(text.decode("latin-1")))


def _constants(unit: Unit) -> Iterator[Finding]:
    """`WARP_SIZE = 32`, as a macro, a constant or an enumerator."""
    for index in of_kind(unit, NUMBER):
        if index < 2 or not _THIRTY_TWO.match(unit.text(index)):
            continue
        named = index - 2 if unit.text(index - 1) in (b"=", b"{", b"(") else index - 1
        if unit.kind(named) != IDENT:
            continue
        if named == index - 1 and unit.text(index - 2) != b"define":
            continue
        if _WARP_NAME.search(word(unit, named)) and _set_here(unit, named):
            yield unit.finding(
                "warp-width",
                "warning",
                named,
                f"{word(unit, named)} is 32, the width of a CUDA warp; a wavefront has 64 lanes "
                "on CDNA GPUs",
                "take 64 where __GFX9__ is defined (device code) and ask the device on the host",
            )


def _set_here(unit: Unit, named: int) -> bool:
    before = unit.text(named - 1)
    return unit.kind(named - 1) == IDENT or before in (b",", b"{", b"*", b"&")


def _halving_loops(unit: Unit) -> Iterator[Finding]:
    """A loop from 16 down around a shuffle sums half a wavefront."""
    shuffles = sorted(place for name in _SHUFFLES for place in unit.find(name))
    for index in unit.find(b"for"):
        near = any(index < place < index + _LOOP_REACH for place in shuffles)
        if not near:
            continue
        for at in range(index + 1, min(index + 12, len(unit.tokens))):
            if unit.kind(at) == NUMBER and unit.text(at).rstrip(b"uU") == b"16":
                if unit.text(at - 1) not in (b"=", b"{", b"("):
                    continue
                yield unit.finding(
                    "warp-width",
                    "warning",
                    at,
                    "the loop starts at half a CUDA warp; on a wavefront of 64 lanes it leaves "
                    "out the upper half",
                    "start at warpSize / 2",
                    name="16",
                )
                break
