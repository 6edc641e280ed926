"""The renaming of identifiers, and the report of every CUDA name that stays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from port.hipify import stand_ins
from port.hipify.aliases import is_template_parameter
from port.hipify.calls import enclosing_call
from port.hipify.declarations import LOOKS_LIKE_CUDA, declares
from port.hipify.lexer import IDENT
from port.hipify.unit import FRAGMENT_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.conditions import Conditions
    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.mapping import Entry
    from port.hipify.preprocess import Directive
    from port.hipify.rewrite import Edit
    from port.hipify.scopes import Scope
    from port.hipify.unit import Unit

_TEXT_DIRECTIVES = frozenset({b"error", b"warning", b"pragma", b"line", b"ident"})
_CONDITIONALS = frozenset({b"if", b"ifdef", b"ifndef", b"elif", b"elifdef", b"elifndef"})
_COLLECTIVES = (b"nccl", b"NCCL_")
_TAG_KEYS = frozenset({b"struct", b"union", b"enum"})


def rename(unit: Unit, context: Context, conditions: Conditions) -> Iterator[Finding | Edit]:
    """The edits that rename every CUDA name of `unit`, and a finding for each one that stays."""
    lookup = context.mapping.lookup
    for name, places in unit.names.items():
        text = name.decode("utf-8", "surrogateescape")
        entry = lookup(text)
        if entry is not None:
            if entry.target != text:
                for index in places:
                    found = entry if entry.target else _guarded(context, conditions, index, entry)
                    yield from _known(unit, context, conditions, index, name, found)
        elif (new := context.pasted.renamed.get(name)) is not None:
            yield from (unit.edit(index, index + 1, new) for index in places)
        elif LOOKS_LIKE_CUDA.fullmatch(name) and name not in context.project.declared:
            for index in places:
                yield from _unknown(unit, index)


def _known(
    unit: Unit, context: Context, conditions: Conditions, index: int, name: bytes, entry: Entry
) -> Iterator[Finding | Edit]:
    directive = unit.directive_at(index)
    if directive is not None and directive.name in _TEXT_DIRECTIVES:
        return
    place = _own_place(unit, context, index, name)
    if place == "own":
        yield _own(unit, index, entry)
    elif place == "foreign":
        # `std::pow` is no one's but the library's, although CUDA declares a pow as well.
        if not LOOKS_LIKE_CUDA.fullmatch(name):
            return
        yield unit.finding(
            "qualified-name",
            "error",
            index,
            f"CUDA's {entry.name} has no such qualifier, and the tree declares none",
            "give the folder of the header that declares it with -I",
        )
    elif entry.target is None:
        plain = LOOKS_LIKE_CUDA.fullmatch(name) or name.startswith(_COLLECTIVES)
        if not plain and not _is_cuda_use(unit, context, index, name):
            return
        if name in context.project.defined:
            yield _own(unit, index, entry)
            return
        yield from _lacking(unit, context, conditions, index, entry)
    elif name in context.pasted.kept and (macro := context.pasted.is_given(unit, index)):
        yield _kept(unit, index, entry, macro)
    else:
        given = name in context.pasted.given and context.pasted.is_given(unit, index)
        if entry.how == "compat" and given:
            entry = context.mapping.renamed(entry.name) or entry
        if entry.how == "compat" and directive is not None and _is_listed(unit, directive, index):
            # Whoever applies the list may quote the name or take its type: a wrapper has neither.
            entry = context.mapping.renamed(entry.name) or entry
        if name in context.project.owned_names and _made_by_macro(unit, index):
            yield unit.finding(
                "own-name",
                "error",
                index,
                f"a macro makes a member of {entry.name}, which becomes {entry.target}; uses of "
                "it keep their name, as other members of that name do",
                "write the member out, or give the other members another name",
            )
        yield _replacement(unit, context, index, entry, entry.target or "")


def _lacking(
    unit: Unit, context: Context, conditions: Conditions, index: int, entry: Entry
) -> Iterator[Finding | Edit]:
    """The report of a name that HIP lacks, and what stands for it where something can."""
    since = f"; HIP has it from {entry.since} on" if entry.since else ""
    message = f"{entry.name} has no counterpart in HIP {context.release}{since}"
    number = piece = None
    if _may_stand_in(unit, index) and conditions.release_at(index) is not None:
        number = stand_ins.number(entry.name, context.mapping)
        piece = None if number else context.mapping.stand_in(entry.name)
    if number is None and piece is None:
        remedy = "guard the code that needs it, or give a name for it with --map"
        yield unit.finding(
            "no-counterpart",
            "error",
            index,
            message,
            entry.note or remedy,
        )
        return
    message += f"; {stand_ins.effect(entry, number)}"
    remedy = "leave it out on HIP, or give a name for it with --map"
    yield unit.finding(
        "stand-in",
        "error",
        index,
        message,
        entry.note or remedy,
    )
    if piece is not None:
        yield unit.edit(index, index + 1, piece.target.encode(), compat=(entry.name,))
    elif number is not None:
        yield unit.edit(index, index + 1, number.encode())


def _may_stand_in(unit: Unit, index: int) -> bool:
    """Whether the name is code: a condition asks whether there is one, a list may spell it."""
    if unit.path.endswith(FRAGMENT_SUFFIXES) or unit.text(index - 1) in (b".", b"->", b"::"):
        return False
    directive = unit.directive_at(index)
    if directive is None:
        return True
    named = directive.first + 2 == index
    return directive.name == b"define" and not named and not _is_listed(unit, directive, index)


def _own(unit: Unit, index: int, entry: Entry) -> Finding:
    return unit.finding(
        "own-name",
        "note",
        index,
        f"{entry.name} is the project's own name here and stays",
        "rename it if CUDA's is meant",
    )


def _kept(unit: Unit, index: int, entry: Entry, macro: bytes) -> Finding:
    return unit.finding(
        "pasted-name",
        "error",
        index,
        f"{macro.decode('utf-8', 'replace')} makes a name of this one, and would make that of "
        f"{entry.target} twice, as another of CUDA's names becomes it, too; it stays, also where "
        "the macro spells it as text",
        "leave out on HIP what has no function of its own there",
    )


def _made_by_macro(unit: Unit, index: int) -> bool:
    """Whether the name is an argument of a macro that stands where a class has its members."""
    if unit.scopes.at(index).kind != "class" or unit.text(index - 1) not in (b"(", b","):
        return False
    call = enclosing_call(unit, index)
    return call is not None and unit.text(call.name - 1) in (b"{", b"}", b";", b":", b")")


def _guarded(context: Context, conditions: Conditions, index: int, entry: Entry) -> Entry:
    """What becomes of a name that the chosen release lacks, at a place only a later one compiles.

    The compat header has a later one's wrapper behind the same test.
    """
    release = conditions.release_at(index)
    if release is None or release == context.release:
        return entry
    later = context.mapping_for(release).lookup(entry.name)
    if later is None or not later.target:
        return entry
    return replace(later, carried=f"{entry.name}@{release}") if later.carried else later


def _replacement(unit: Unit, context: Context, index: int, entry: Entry, target: str) -> Edit:
    first = index
    # A tag that becomes a plain typedef loses its `struct` or `enum`.
    if unit.text(index - 1) in _TAG_KEYS and context.hip.kind(target) == "type":
        first = index - 1
    compat = (entry.carried,) if entry.carried else ()
    return unit.edit(first, index + 1, target.encode("utf-8", "surrogateescape"), compat=compat)


def _is_listed(unit: Unit, directive: Directive, index: int) -> bool:
    """Whether a name is an entry of a list macro: `#define LIST(ENTRY) ENTRY(cuMemAlloc) …`."""
    if directive.name != b"define" or unit.text(index + 1) not in (b",", b")"):
        return False
    call = enclosing_call(unit, index)
    if call is None:
        return False
    name = unit.text(directive.first + 2)
    return any(
        macro.name == name and unit.text(call.name) in (macro.parameters or ())
        for macro in unit.macros
    )


def _is_cuda_use(unit: Unit, context: Context, index: int, name: bytes) -> bool:
    """Whether a name that is a common word, too, is used as CUDA's: as a call, or spelled `__…`."""
    if name in context.project.declared:
        return False
    return name.startswith(b"__") and unit.text(index - 1) not in (b".", b"->", b"::")


def _own_place(unit: Unit, context: Context, index: int, name: bytes) -> str:
    """`own` where the project's name is meant, `foreign` where some unknown one is, else empty."""
    before = unit.text(index - 1)
    if before == b"template":
        before = unit.text(index - 2)
    if before in (b".", b"->", b"->*", b".*"):
        return "own" if name in context.project.owned_names else ""
    if before == b"::":
        if not _is_qualifier(unit, index - 2):
            return ""
        qualifier = unit.text(index - 2)
        if (qualifier, name) in context.project.owned:
            return "own"
        if (qualifier, name) in context.project.imported:
            return ""
        if name in context.project.owned_names and is_template_parameter(unit, qualifier):
            return "own"
        if context.mapping.lookup(qualifier.decode("utf-8", "replace")) is not None:
            return ""
        return "foreign"
    if name not in context.project.owned_names:
        return ""
    scope = unit.scopes.at(index)
    if scope.kind == "class" and not _known_to_class(unit, index, name, scope):
        return ""
    if scope.kind == "enum" and (scope.name, name) in context.project.owned:
        return "own"
    named = any((owner, name) in context.project.owned for owner in scope.owners())
    nameless = scope.kind == "class" and not scope.name and (b"", name) in context.project.owned
    return "own" if named or nameless else ""


def _known_to_class(unit: Unit, index: int, name: bytes, scope: Scope) -> bool:
    """Whether the class has the name by then: `decltype(&cudaFree) cudaFree;` names CUDA's first.

    Outside of its functions' bodies a class knows only the members that come before.
    """
    here = (place for place in unit.find(name) if place <= index)
    if any(unit.scopes.at(place) is scope and declares(unit, place) for place in here):
        return True
    later = (place for place in unit.find(name) if place > index)
    return not any(unit.scopes.at(place) is scope and declares(unit, place) for place in later)


def _is_qualifier(unit: Unit, index: int) -> bool:
    """Whether the token before `::` qualifies it: `mine::cudaFree`, but not `API ::cudaFree`."""
    if unit.kind(index) != IDENT or unit.text(index) in _NO_QUALIFIERS:
        return False
    starts, ends = unit.tokens.starts, unit.tokens.ends
    return not (starts[index + 1] > ends[index] and starts[index + 2] == ends[index + 1])


_NO_QUALIFIERS = frozenset(
    b"return else case using throw typename new delete inline static const constexpr extern "
    b"volatile typedef struct union enum sizeof co_return virtual friend explicit".split()
)


def _unknown(unit: Unit, index: int) -> Iterator[Finding]:
    if unit.text(index - 1) in (b".", b"->", b"::", b"->*", b".*"):
        return
    directive = unit.directive_at(index)
    if directive is not None and directive.name in _TEXT_DIRECTIVES:
        return
    if directive is not None and directive.name in (*_CONDITIONALS, b"undef"):
        yield unit.finding(
            "unknown-macro",
            "warning",
            index,
            "a condition on a name that looks like CUDA's and that nothing in the tree defines",
            "define it for the converted build as well, or give it with -D",
        )
        return
    yield unit.finding(
        "unknown-name",
        "error",
        index,
        "looks like a name of CUDA's, but is neither one that is known nor declared in the tree",
        "give the folder of the header that declares it with -I, or a name for it with --map",
    )
