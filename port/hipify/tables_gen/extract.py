"""Read the declarations of C and C++ headers with libclang."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clang import cindex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

# The options of clang_parseTranslationUnit: macros are cursors too, function bodies are not read.
_OPTIONS = 0x01 | 0x40

_KINDS = {
    cindex.CursorKind.FUNCTION_DECL: "function",
    cindex.CursorKind.FUNCTION_TEMPLATE: "function",
    cindex.CursorKind.TYPEDEF_DECL: "type",
    cindex.CursorKind.TYPE_ALIAS_DECL: "type",
    cindex.CursorKind.STRUCT_DECL: "struct",
    cindex.CursorKind.UNION_DECL: "struct",
    cindex.CursorKind.CLASS_DECL: "struct",
    cindex.CursorKind.ENUM_DECL: "enum",
    cindex.CursorKind.VAR_DECL: "variable",
}
_RECORDS = frozenset({"struct"})


@dataclass(frozen=True, slots=True)
class Record:
    """One declared name. `parameters` holds types for a function, names for a macro with
    arguments, `member:type` pairs for a structure; `older` the parameters in older releases.
    """

    name: str
    kind: str
    header: str
    value: str = ""
    result: str = ""
    parameters: tuple[str, ...] | None = None
    older: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """One translation unit to read: headers in order, and where the names may come from."""

    headers: tuple[str, ...]
    roots: tuple[Path, ...]
    arguments: tuple[str, ...]
    prelude: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one unit declares, and what the parser complained about."""

    records: Mapping[str, Record]
    errors: tuple[str, ...]


def read(unit: Unit) -> Reading:
    """Parse `unit` and return the names that files under its roots declare.

    The first declaration of a name wins, save that a complete type replaces an incomplete one.
    """
    text = unit.prelude + "".join(f"#include <{header}>\n" for header in unit.headers)
    arguments = [*unit.arguments, *(f"-I{root}" for root in unit.roots)]
    parsed = cindex.Index.create().parse(
        "unit.cpp", args=arguments, unsaved_files=[("unit.cpp", text)], options=_OPTIONS
    )
    errors = tuple(str(each) for each in parsed.diagnostics if each.severity >= 3)
    records: dict[str, Record] = {}
    macros: dict[str, Record] = {}
    names = _Names(unit.roots)
    for cursor, header in _declarations(parsed.cursor, names):
        if cursor.kind == cindex.CursorKind.MACRO_DEFINITION:
            macros[cursor.spelling] = _macro(cursor, header)
            continue
        for record in _records(cursor, header):
            known = records.get(record.name)
            if known is None or (known.parameters is None and record.parameters is not None):
                records[record.name] = record
    return Reading(_with_macros(records, macros), errors)


class _Names:
    """Header names relative to the roots they were found under; None for every other file."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [f"{root.resolve()}/".replace("//", "/") for root in roots]
        self._known: dict[str, str | None] = {}

    def of(self, path: str) -> str | None:
        if path not in self._known:
            root = next((root for root in self._roots if path.startswith(root)), None)
            self._known[path] = None if root is None else path[len(root) :]
        return self._known[path]


def _declarations(top: Any, names: _Names) -> Iterator[tuple[Any, str]]:
    for cursor in top.get_children():
        unnamed = cursor.kind == cindex.CursorKind.NAMESPACE and cursor.is_anonymous()
        if unnamed or cursor.kind == cindex.CursorKind.LINKAGE_SPEC:
            yield from _declarations(cursor, names)
            continue
        place = cursor.location.file
        header = names.of(place.name) if place is not None else None
        if header is not None:
            yield cursor, header


def _records(cursor: Any, header: str) -> Iterator[Record]:
    kind = _KINDS.get(cursor.kind)
    if kind is None:
        return
    name = cursor.spelling
    named = bool(name) and "(" not in name and " " not in name
    if kind == "function":
        if not name.startswith("operator"):
            yield _function(cursor, header)
    elif kind == "enum":
        if named:
            yield Record(name, kind, header)
        for each in cursor.get_children():
            if each.kind == cindex.CursorKind.ENUM_CONSTANT_DECL:
                yield Record(each.spelling, "enumerator", header, str(each.enum_value), name)
    elif kind in _RECORDS:
        if named:
            yield Record(name, kind, header, parameters=_members(cursor.type))
    elif kind == "type":
        yield _typedef(cursor, header)
    else:
        yield Record(name, kind, header, result=cursor.type.spelling)


def _function(cursor: Any, header: str) -> Record:
    if cursor.kind == cindex.CursorKind.FUNCTION_TEMPLATE:
        children = [
            each for each in cursor.get_children() if each.kind == cindex.CursorKind.PARM_DECL
        ]
        parameters = tuple(each.type.spelling for each in children)
    else:
        parameters = tuple(each.type.spelling for each in cursor.get_arguments())
    if cursor.type.kind == cindex.TypeKind.FUNCTIONPROTO and cursor.type.is_function_variadic():
        parameters = (*parameters, "...")
    return Record(cursor.spelling, "function", header, "", cursor.result_type.spelling, parameters)


def _typedef(cursor: Any, header: str) -> Record:
    under = cursor.underlying_typedef_type
    declaration = under.get_declaration()
    members = None
    if _KINDS.get(declaration.kind) in _RECORDS:
        members = _members(under)
    spelling = under.spelling
    if "(unnamed" in spelling or "(anonymous" in spelling:
        spelling = ""
    return Record(cursor.spelling, "type", header, spelling, parameters=members)


def _members(of: Any) -> tuple[str, ...] | None:
    declaration = of.get_declaration()
    definition = declaration.get_definition()
    if definition is None:
        return None
    return tuple(_fields(definition, ""))


def _fields(definition: Any, prefix: str) -> Iterator[str]:
    for field in definition.get_children():
        if field.kind in {cindex.CursorKind.STRUCT_DECL, cindex.CursorKind.UNION_DECL}:
            if field.is_anonymous():
                yield from _fields(field, prefix)
        elif field.kind == cindex.CursorKind.FIELD_DECL:
            inner = field.type.get_declaration()
            spelling = field.type.spelling
            if "(unnamed" in spelling or "(anonymous" in spelling:
                yield f"{prefix}{field.spelling}:struct"
                yield from _fields(inner, f"{prefix}{field.spelling}.")
            else:
                yield f"{prefix}{field.spelling}:{spelling}"


def _macro(cursor: Any, header: str) -> Record:
    tokens = [token.spelling for token in cursor.get_tokens()][1:]
    parameters = None
    if cindex.conf.lib.clang_Cursor_isMacroFunctionLike(cursor):
        close = tokens.index(")")
        parameters = tuple(each for each in tokens[1:close] if each != ",")
        tokens = tokens[close + 1 :]
    return Record(cursor.spelling, "macro", header, " ".join(tokens), parameters=parameters)


def _with_macros(records: dict[str, Record], macros: Mapping[str, Record]) -> dict[str, Record]:
    """Add the macros; one that only renames a declared name takes over its prototype."""
    merged = dict(records)
    # cuda.h wraps a name as __CUDA_API_PTDS(name), which is the name unless asked otherwise.
    same = {name for name, macro in macros.items() if macro.parameters == (macro.value,)}
    for name, macro in macros.items():
        target, seen = _unwrapped(macro.value, same), {name}
        while target in macros and target not in seen and macros[target].parameters is None:
            seen.add(target)
            target = _unwrapped(macros[target].value, same)
        meant = records.get(target)
        if meant is not None and macro.parameters is None and target != name:
            merged[name] = replace(meant, name=name, header=macro.header, value=target)
        elif name not in records or macro.value != name:
            merged.setdefault(name, macro)
    return merged


def _unwrapped(value: str, same: set[str]) -> str:
    words = value.split(" ")
    if len(words) == 4 and words[0] in same and (words[1], words[3]) == ("(", ")"):
        return words[2]
    return value
