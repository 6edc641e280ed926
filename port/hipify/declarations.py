"""Finds what a file declares among the names that look like CUDA's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify import aliases, constants, pasted
from port.hipify.facts import Facts
from port.hipify.lexer import IDENT
from port.hipify.unit import FRAGMENT_SUFFIXES

if TYPE_CHECKING:
    from port.hipify.tables import Table
    from port.hipify.unit import Unit

LOOKS_LIKE_CUDA = re.compile(
    rb"_{0,2}cuda[A-Z]\w*|(?:PFN_)?cu[A-Z]\w*|CU_[A-Z0-9]\w*|CUDA_[A-Z0-9]\w*|CUDART_\w+|CU[a-z]\w+"
    rb"|CUDA(?:RT)?API|(?:cublas|cudnn|cufft|cusparse|cusolver|curand|cutensor|cufile|cupti|nvrtc"
    rb"|nvml|nvtx|nvjpeg|nvJitLink|nvshmem|npp|nvPTX)[A-Z_]\w*"
    rb"|(?:CUBLAS|CUDNN|CUFILE|CUFFT|CUSPARSE|CUSOLVER|CURAND|CUPTI|NVRTC|NVML|NVTX|NPP)[A-Z]*_\w+"
    rb"|__nv_\w+|nv_bfloat\w+|NV(?:JPEG|JITLINK|PTXCOMPILE|LINK)_\w+|CU(?:File|GPUDirect|GL)\w+"
)
"""Names that follow the patterns of CUDA's headers and libraries."""

_NO_TYPES = frozenset(
    b"return else goto case new delete throw sizeof alignof decltype typeof co_return co_await "
    b"co_yield not and or xor operator using if while for do switch default const volatile static "
    b"extern inline constexpr consteval constinit register virtual friend explicit mutable typedef "
    b"thread_local public private protected in is import cimport from __restrict__ __restrict "
    b"restrict _Atomic".split()
)
_CLASS_KEYS = frozenset({b"class", b"struct", b"union", b"enum"})
_TYPE_OF = frozenset(
    b"decltype typeof typeof_unqual __typeof__ __typeof __decltype _Atomic".split()
)
_AFTER_NAME = frozenset(b"; = , ) [ ( { :".split())
_PLAIN_TYPES = frozenset(
    b"auto int unsigned signed long short char bool float double void size_t".split()
)


def gather(unit: Unit, known: Table) -> Facts:
    """What `unit` declares among the names that look like CUDA's or are in `known`."""
    owned: set[tuple[bytes, bytes]] = set()
    declared: set[bytes] = set()
    defined: set[bytes] = set()
    imported: set[tuple[bytes, bytes]] = set()
    used: set[bytes] = set()
    enumerations: set[str] = set()
    passed: set[tuple[bytes, ...]] = set()
    longer: set[bytes] = set()
    macros = {macro.token for macro in unit.macros}
    kinds = known.kinds
    for name, places in unit.names.items():
        kind = kinds.get(name)
        if kind == "function" or name.startswith(b"hip"):
            passed.update(pasted.arguments(unit, name))
        elif b"cu" in name or b"hip" in name:
            part = pasted.core(name) or b""
            if kinds.get(part) == "function" or part.startswith(b"hip"):
                longer.add(name)
        if kind is None and not LOOKS_LIKE_CUDA.fullmatch(name):
            continue
        used.add(name)
        if kind in ("enum", "type"):
            text = name.decode()
            if known.enumeration(text) is not None:
                enumerations.add(text)
        for index in places:
            if index in macros:
                declared.add(name)
                defined.add(name)
                continue
            if unit.directive_at(index) is not None:
                continue
            if _is_import(unit, index):
                imported.update((owner, name) for owner in unit.scopes.at(index).owners()[:1])
            elif declares(unit, index):
                declared.add(name)
                if not _is_prototype(unit, index):
                    defined.add(name)
                scope = unit.scopes.at(index)
                while scope.kind == "enum" and not scope.name and scope.parent is not None:
                    scope = scope.parent
                if scope.kind in ("class", "namespace", "enum") and scope.name:
                    owned.add((scope.name, name))
                elif scope.kind == "class":
                    owned.add((b"", name))
    named = tuple((each.path, each.angled) for each in unit.includes if each.path and not each.test)
    if not unit.path.endswith(FRAGMENT_SUFFIXES):
        used.clear()
    return Facts(
        frozenset(owned),
        frozenset(declared),
        frozenset(defined),
        frozenset(imported),
        named,
        frozenset(used),
        aliases.gather(unit),
        constants.shared(unit),
        frozenset(enumerations),
        frozenset(pasted.macros(unit)),
        frozenset(passed),
        frozenset(longer),
    )


def _is_import(unit: Unit, index: int) -> bool:
    return unit.text(index - 1) == b"::" and unit.text(index - 2) == b"using"


def declares(unit: Unit, index: int) -> bool:
    """Whether the identifier at `index` is being declared there."""
    before, after = unit.text(index - 1), unit.text(index + 1)
    scope = unit.scopes.at(index)
    if before in _CLASS_KEYS:
        # `= enum Kind;` and `(struct Kind;` only name the type.
        alone = unit.text(index - 2) in (b"", b";", b"{", b"}", b":", b">", b"friend")
        return after in (b"{", b":", b"final") or (after == b";" and alone)
    if before in (b"namespace", b"typename", b"concept"):
        return after in (b"{", b",", b">", b"=", b"::")
    if before == b"using":
        return after == b"="
    if scope.kind == "enum":
        return before in (b"{", b",") or before == b""
    if before in (b"[", b",") and _in_binding(unit, index):
        return True
    if after not in _AFTER_NAME and not after.startswith(b"__attribute"):
        return False
    if after == b":" and scope.in_function and before in (b";", b"{", b"}"):
        return True
    if unit.kind(index - 1) == IDENT:
        return before not in _NO_TYPES
    if before in (b"*", b"&", b"&&"):
        return _declares_pointer(unit, index, in_function=scope.in_function)
    if before in (b">", b">>", b">>>") or _closes_type(unit, index - 1):
        return True
    if before == b"," and after in (b";", b",", b"=", b"["):
        return _in_declaration_list(unit, index)
    return False


def _declares_pointer(unit: Unit, index: int, *, in_function: bool) -> bool:
    place = index - 1
    while unit.text(place) in (b"*", b"&", b"&&", b"const", b"__restrict__"):
        place -= 1
    word = unit.text(place)
    if word == b"(" or unit.text(place) == b"::":
        # `result (*name)(…)`, `result (Class::*name)(…)`
        while place > 0 and unit.text(place) != b"(":
            place -= 1
        is_type = unit.kind(place - 1) == IDENT and unit.text(place - 1) not in _NO_TYPES
        follows = unit.text(index + 1) == b")" and unit.text(index + 2) in (b"(", b"[")
        return follows and (is_type or unit.text(place - 1) in (b"*", b"&", b">", b"const"))
    if word in (b">", b">>", b">>>") or _closes_type(unit, place):
        return True
    if unit.kind(place) != IDENT or word in _NO_TYPES:
        return False
    if word in _PLAIN_TYPES:
        return True
    lead = unit.text(place - 1)
    while lead in (b"::", b"const", b"struct"):
        place -= 2 if lead == b"::" else 1
        lead = unit.text(place - 1)
    if in_function and lead in (b"(", b","):
        return unit.text(place - 2) in (b"for", b"catch", b"]", b"if", b"while")
    return lead in (b"", b";", b"{", b"}", b"(", b",", b"<", b":", b">", b")") or (
        unit.kind(place - 1) == IDENT and lead not in (b"return", b"case", b"throw")
    )


def _closes_type(unit: Unit, index: int) -> bool:
    """Whether the token at `index` closes `decltype(…)` or one of C's spellings of it."""
    if unit.text(index) != b")":
        return False
    opening = unit.partner(index)
    return opening is not None and unit.text(opening - 1) in _TYPE_OF


def _in_declaration_list(unit: Unit, index: int) -> bool:
    """Whether a name after a comma continues a list of declarators: `int a, name;`."""
    first = unit.statement_start(index)
    if unit.kind(first) != IDENT or unit.text(first) == b"return":
        return False
    second = first + 1
    while unit.text(second) in (b"*", b"&", b"::", b"const") or unit.text(second - 1) == b"::":
        second += 1
    return unit.kind(second) == IDENT and second < index and unit.text(first - 1) != b"("


def _in_binding(unit: Unit, index: int) -> bool:
    """Whether the name is one of `auto [a, b]`."""
    limit = max(0, index - 40)
    place = index - 1
    while place > limit and (unit.kind(place) == IDENT or unit.text(place) == b","):
        place -= 1
    return unit.text(place) == b"[" and unit.text(place - 1) in (b"auto", b"&", b"&&")


def _is_prototype(unit: Unit, index: int) -> bool:
    """Whether the declaration at `index` is a function without a body."""
    if unit.text(index + 1) != b"(":
        return False
    close = unit.partner(index + 1)
    if close is None:
        return False
    place = close + 1
    while unit.text(place) in (b"const", b"noexcept", b"override", b"throw", b"(", b")"):
        place += 1
    return unit.text(place) != b"{"
