"""From CUDA's names to those of one HIP release, derived from both sides' headers.

A name maps by the plain renaming rule (`port.hipify.naming`), by an entry of
`data/exceptions.toml`, or through the compat header; in each case only to what the chosen release
declares. A CUDA name with no counterpart is an `Entry` whose target is None: it has to be reported.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from port.hipify import compat, flags, naming, signature, stand_ins, tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Mapping as Dict

    from port.hipify.piece import Piece

# What may stand for what: a macro can be any constant, and a typedef any type.
_TYPES = frozenset({"type", "struct", "enum", "macro"})
_CONSTANTS = frozenset({"enumerator", "macro", "variable"})
_FITTING = {
    "function": frozenset({"function", "macro"}),
    "type": _TYPES,
    "struct": _TYPES,
    "enum": _TYPES,
    "enumerator": _CONSTANTS,
    "variable": _CONSTANTS,
    "macro": _CONSTANTS | {"function"},
}
_GUARD = re.compile(r"_(?i:h|hpp)_*$")


@dataclass(frozen=True, slots=True)
class Entry:
    """What becomes of one CUDA name.

    `kind` is that of the CUDA declaration. `how`: plain (the renaming rule), exception (the table
    of exceptions), compat (a name of the compat header), override (the user's map), drop (the name
    goes away: replace it with nothing), keep (it stays as it is), none (no counterpart). `since`:
    the first known HIP release with a counterpart, where the chosen one has none. `symbol`: the
    name that the HIP library exports for it, to be written into a string that is looked up at run
    time. `carried`: what the compat header has to be asked for, where it has the target.
    """

    name: str
    target: str | None
    kind: str
    how: str
    since: str | None = None
    note: str = ""
    symbol: str | None = None
    carried: str = ""


@dataclass(frozen=True, slots=True)
class IncludeEntry:
    """What becomes of one header of CUDA's; `target` None: there is no counterpart.

    `instead`: what to include where stand-ins take the place of the header's names. `piece`: what
    of the compat header brings what the target lacks.
    """

    path: str
    target: str | None
    how: str
    since: str | None = None
    note: str = ""
    instead: str | None = None
    piece: str | None = None


class Mapping:
    """The map to one HIP release.

    `release`: any version from 5.2 on; the tables of the nearest release not newer serve it.
    `overrides`: the user's own names and header paths, taken literally, first of all. `hip`: a
    table to use in place of the release's own. `types`: CUDA's names of enumerations that the tree
    uses as types.

    Raises:
        InputError: the release is below the oldest table.

    """

    def __init__(
        self,
        release: str = tables.DEFAULT_RELEASE,
        overrides: Dict[str, str] | None = None,
        hip: tables.Table | None = None,
        types: Iterable[str] = (),
    ) -> None:
        self.asked = release
        self.release = tables.nearest_release(release)
        self.overrides = dict(overrides or {})
        self.hip = hip or tables.load_hip(self.release)
        self._names: dict[str, Entry | None] = {}
        self._renamed: dict[str, Entry | None] = {}
        self._includes: dict[str, IncludeEntry | None] = {}
        self._others: dict[str, Mapping] = {}
        self._types = tuple(types)
        self._stand_ins: dict[str, Piece | None] = {}

    def at(self, release: str) -> Mapping:
        """The map to another release, with the same names of the user's."""
        if release not in self._others:
            self._others[release] = Mapping(release, self.overrides, types=self._types)
        return self._others[release]

    @cached_property
    def cuda(self) -> tables.Table:
        """The table of CUDA's names."""
        return tables.load_cuda()

    @cached_property
    def flags(self) -> frozenset[str]:
        """Tags of the enumerations that the compat header declares: see `port.hipify.flags`."""
        lacking = (name for name in self._types if self.target_of(name) is None)
        tags = {tag for name in lacking if (tag := self.cuda.enumeration(name)) is not None}
        return frozenset(tag for tag in tags if flags.is_partly_there(tag, self))

    def stand_in(self, name: str) -> Piece | None:
        """What stands for a name without a target: see `port.hipify.stand_ins`."""
        if name not in self._stand_ins:
            self._stand_ins[name] = None  # for a structure that holds itself
            self._stand_ins[name] = stand_ins.find(name, self)
        return self._stand_ins[name]

    def lookup(self, name: str) -> Entry | None:
        """What becomes of the identifier `name`; None where it is no name of CUDA's."""
        if name not in self._names:
            known = name in self._vocabulary or "_v" in name or "_pt" in name
            self._names[name] = (self._carried(name) or self.renamed(name)) if known else None
        return self._names[name]

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        """All names that this map has something for, but for further versions of one."""
        names = (self.cuda, self.overrides, _exceptions()["names"], compat.by_hand())
        return frozenset(name for each in names for name in each)

    def target_of(self, name: str) -> str | None:
        """The HIP name of a CUDA name, whatever the compat header has for it."""
        entry = self.renamed(name)
        return entry.target if entry is not None else None

    def target_declaration(self, name: str) -> tables.Declaration | None:
        """What HIP declares for the CUDA function `name`; None where there is no such function."""
        target = self.target_of(name)
        declared = self.hip.get(target) if target else None
        return declared if declared is not None and declared.kind == "function" else None

    def is_public_name_of(self, name: str, base: str) -> bool:
        """Whether `base` is only a macro for `name`, as cuMemAlloc is for cuMemAlloc_v2."""
        declared = self.cuda.get(base)
        return declared is not None and declared.value == name

    def same_type(self, cuda: str, hip: str) -> bool:
        """Whether the CUDA type `cuda` is the HIP type `hip` under its other name."""
        mine, theirs = signature.shape(cuda, self.cuda), signature.shape(hip, self.hip)
        return signature.fit(mine, theirs, self.target_of, self.hip) is signature.Fit.SAME

    def include(self, path: str) -> IncludeEntry | None:
        """What becomes of `#include <path>`; None where it is no header of CUDA's.

        Whether a quoted path is the project's own file is for the caller to find out first.
        """
        if path not in self._includes:
            self._includes[path] = self._include(path)
        return self._includes[path]

    def namespace(self, name: str) -> Entry | None:
        """What becomes of the namespace `name` before `::`; None where it is not CUDA's."""
        rule = _exceptions()["namespaces"].get(name)
        if rule is None:
            return None
        target, note = _target_of(rule)
        return Entry(name, target, "namespace", "exception" if target else "none", note=note)

    def _carried(self, name: str) -> Entry | None:
        if name in self.overrides:
            return None
        piece = compat.find(name, self)
        if piece is None:
            return None
        kind = self.cuda.kind(name) or "name"
        symbol = piece.symbol or (piece.target if piece.target in self.hip else None)
        return Entry(
            name, piece.target, kind, "compat", note=piece.note, symbol=symbol, carried=name
        )

    def renamed(self, name: str) -> Entry | None:
        """What a rename alone makes of `name`, without the compat header."""
        if name not in self._renamed:
            self._renamed[name] = self._rename(name)
        return self._renamed[name]

    def _rename(self, name: str) -> Entry | None:
        kind = self.cuda.kind(name)
        if name in self.overrides:
            return Entry(name, self.overrides[name], kind or "name", "override")
        base = naming.base_name(name)
        if base != name and self.is_public_name_of(name, base):
            entry = self.renamed(base)
            return replace(entry, name=name) if entry is not None else None
        if kind == "struct" and name.endswith("_st") and not self.cuda.members(name):
            return self._opaque(name)
        rules = _exceptions()["names"].get(name)
        if kind is None and rules is None:
            return None
        kind = kind or "name"
        note = ""
        for rule in _alternatives(rules):
            target, said = _target_of(rule)
            if isinstance(rule, dict) and rule.get("drop"):
                return Entry(name, "", kind, "drop")
            if isinstance(rule, dict) and rule.get("keep"):
                return Entry(name, name, kind, "keep")
            note = note or said
            if target and _in_force(rule, self.release) and target in self.hip:
                return Entry(
                    name, target, kind, "exception", note=note, symbol=self._symbol(target)
                )
        if rules is None:
            target = self._best(name, list(_plain(name, kind, self.hip)))
            if target is not None:
                return Entry(name, target, kind, "plain", symbol=self._symbol(target))
        if kind == "macro" and (guard := self._guard(name)) is not None:
            return Entry(name, guard, kind, "exception")
        return Entry(name, None, kind, "none", _since(name, kind, self.release), note)

    def _opaque(self, name: str) -> Entry:
        """The structure behind a handle: CUstream is a pointer to CUstream_st in CUDA."""
        target = self.target_of(name.removesuffix("_st"))
        handle = self.hip.get(target) if target else None
        match = re.fullmatch(r"(?:struct )?(\w+) \*", handle.value if handle is not None else "")
        if match is None or match[1] not in self.hip:
            return Entry(name, None, "struct", "none")
        return Entry(name, match[1], "struct", "plain")

    def _guard(self, name: str) -> str | None:
        """The include guard of the header that takes the place of the one `name` guards.

        Code asks for a guard to know which header came before.
        """
        declared = self.cuda.get(name)
        if declared is None or declared.value or not _GUARD.search(name):
            return None
        entry = self.include(declared.header)
        return _guards(self.hip).get(entry.target or "") if entry is not None else None

    def _best(self, name: str, found: list[str]) -> str | None:
        """The likeliest of `found` that takes CUDA's arguments, else the likeliest.

        hipBLAS has calls with its own types and, as `…_v2`, with those of HIP.
        """
        if len(found) > 1 and self.cuda.kind(name) == "function":
            fitting = (each for each in found if self.takes(name, each))
            return next(fitting, found[0])
        return found[0] if found else None

    def takes(self, name: str, target: str) -> bool:
        """Whether a call of the CUDA function `name` compiles as one of `target`, but for const."""
        cuda, hip = self.cuda.get(name), self.hip.get(target)
        if cuda is None or hip is None or cuda.parameters is None or hip.parameters is None:
            return False
        return len(cuda.parameters) == len(hip.parameters) and all(
            signature.fit(
                signature.shape(mine, self.cuda),
                signature.shape(theirs, self.hip),
                self.target_of,
                self.hip,
            )
            <= signature.Fit.UNCONST
            for mine, theirs in zip(cuda.parameters, hip.parameters, strict=True)
        )

    def _symbol(self, target: str) -> str | None:
        declaration = self.hip.get(target)
        if declaration is None or declaration.kind != "function":
            return None
        return declaration.value or declaration.name

    def _include(self, path: str) -> IncludeEntry | None:
        if path in self.overrides:
            return IncludeEntry(path, self.overrides[path], "override")
        rule = _exceptions()["headers"].get(path)
        if rule is not None:
            return self._include_by(path, rule)
        for folder, moved in _exceptions()["folders"].items():
            if path.startswith(folder):
                return self._moved(path, folder, moved)
        if path in self.cuda.headers:
            return IncludeEntry(path, None, "none")
        return None

    def _include_by(self, path: str, rule: Any) -> IncludeEntry:
        target, note = _target_of(rule)
        if target is None or target in self.hip.headers:
            more = {} if isinstance(rule, str) else rule
            instead = more.get("instead") if target is None else None
            how = "exception" if target else "none"
            piece = more.get("piece")
            return IncludeEntry(path, target, how, note=note, instead=instead, piece=piece)
        since = _first(lambda release: target in tables.load_hip(release).headers, self.release)
        return IncludeEntry(path, None, "none", since, note)

    def _moved(self, path: str, folder: str, moved: Dict[str, str]) -> IncludeEntry:
        target, note = _target_of(moved)
        if target is None:
            return IncludeEntry(path, None, "none", note=note)
        rest = path.removeprefix(folder)
        if "suffix" not in moved:
            return IncludeEntry(path, target + rest, "plain")
        renamed = f"{target}{rest.rsplit('.', 1)[0]}{moved['suffix']}"
        if renamed not in self.hip.headers:
            renamed = moved["all"]
        if renamed not in self.hip.headers:
            return IncludeEntry(path, None, "none", note=note)
        return IncludeEntry(path, renamed, "plain")


@cache
def _exceptions() -> Dict[str, Dict[str, Any]]:
    text = resources.files("port.hipify").joinpath("data", "exceptions.toml").read_text("utf-8")
    return tomllib.loads(text)


def _alternatives(rules: Any) -> Iterable[Any]:
    if rules is None:
        return ()
    return rules if isinstance(rules, list) else [rules]


def _target_of(rule: Any) -> tuple[str | None, str]:
    if isinstance(rule, str):
        return rule, ""
    return rule.get("to"), rule.get("note", "")


def _in_force(rule: Any, release: str) -> bool:
    if isinstance(rule, str):
        return True
    version = Version(release)
    if "since" in rule and version < Version(rule["since"]):
        return False
    return not ("until" in rule and version > Version(rule["until"]))


def _plain(name: str, kind: str, hip: tables.Table) -> Iterator[str]:
    """The names of `hip` that the renaming rule finds, likeliest first."""
    fitting = _FITTING[kind]
    for candidate in naming.candidates(name):
        if isinstance(candidate, naming.Key):
            spellings: Iterable[str] = _by_key(hip).get(candidate, ())
        else:
            spellings = (candidate,) if candidate in hip else ()
        yield from (spelling for spelling in spellings if hip.kind(spelling) in fitting)


@cache
def _guards(hip: tables.Table) -> Dict[str, str]:
    """Include guards by header."""
    found: dict[str, str] = {}
    for name in hip:
        if _GUARD.search(name) and hip.kind(name) == "macro":
            declared = hip.get(name)
            if declared is not None and not declared.value:
                found.setdefault(declared.header, name)
    return found


@cache
def _by_key(hip: tables.Table) -> Dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name in hip:
        found.setdefault(naming.key(name), []).append(name)
    return {each: tuple(sorted(names, key=_spelling_order)) for each, names in found.items()}


def _spelling_order(name: str) -> tuple[bool, str]:
    # HIP keeps old spellings in capitals (HIP_ERROR_INVALID_VALUE) beside the ones it documents.
    return not name.startswith("hip"), name


def _since(name: str, kind: str, release: str) -> str | None:
    """The first release after `release` whose headers have a counterpart."""
    rules = _exceptions()["names"].get(name)

    def has(other: str) -> bool:
        for rule in _alternatives(rules):
            target, _ = _target_of(rule)
            if target and _in_force(rule, other) and target in tables.load_hip(other):
                return True
        return rules is None and any(_plain(name, kind, tables.load_hip(other)))

    return _first(has, release)


def _first(has: Any, after: str) -> str | None:
    later = tables.RELEASES[tables.RELEASES.index(after) + 1 :]
    return next((release for release in later if has(release)), None)
