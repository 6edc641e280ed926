"""Includes: which header is meant, what it becomes, and where a missing one goes."""

from __future__ import annotations

import os
import posixpath
import re
from typing import TYPE_CHECKING

from port.hipify import lexer
from port.hipify.rewrite import Edit
from port.hipify.unit import KERNEL_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from port.hipify.context import Context
    from port.hipify.facts import Facts
    from port.hipify.findings import Finding
    from port.hipify.preprocess import Include
    from port.hipify.unit import Unit

RUNTIME = "hip/hip_runtime.h"
_RUNTIME_API = "hip/hip_runtime_api.h"

_VENDOR_LIKE = re.compile(
    r"(?:.*/)?(?:cuda|cublas|cudnn|cufft|cupti|curand|cusolver|cusparse|cutensor|cufile|nvrtc|nvml"
    r"|nvToolsExt|nvtx|nvjpeg|nvshmem|nvPTX|nvJitLink|npp)[A-Za-z0-9_]*\.(?:h|hpp|cuh|hxx)"
)


def convert(unit: Unit, context: Context) -> Iterator[Finding | Edit]:
    """The edits of all vendor includes of `unit`, and a finding for each that has to stay."""
    for include in unit.includes:
        if not include.path:
            yield from _through_macro(unit, include, context)
            continue
        if own_file(unit.path, include.path, context, angled=include.angled) is not None:
            continue
        entry = context.mapping.include(include.path)
        if entry is None:
            if _VENDOR_LIKE.fullmatch(include.path) and not include.test:
                yield _missing(unit, include, context)
        elif entry.target is None:
            since = f"; HIP has it from {entry.since} on" if entry.since else ""
            yield unit.finding_at(
                "include-unmapped",
                "error",
                include.start,
                include.path,
                f"{include.path} has no counterpart in HIP {context.release}{since}",
                entry.note or "guard the code that needs it, or name a header for it with --map",
            )
        else:
            twin = None if include.angled else context.project.by_tail(include.path)
            if twin:
                yield unit.finding_at(
                    "include-ambiguous",
                    "warning",
                    include.start,
                    include.path,
                    f"taken for CUDA's {include.path}, but the tree has {twin} as well",
                    f"if that one is meant, say so with -I {posixpath.dirname(twin) or '.'}",
                )
            target = _target(unit, include, entry.target)
            if target != include.path:
                text = f"<{target}>" if include.angled else f'"{target}"'
                yield Edit(include.start, include.end, text.encode("utf-8", "surrogateescape"))


def _target(unit: Unit, include: Include, target: str) -> str:
    # nvcc gives every kernel file the whole runtime header, also where it asks for the API alone.
    if target == _RUNTIME_API and unit.is_kernel_file and not include.test:
        return RUNTIME
    return target


def _through_macro(unit: Unit, include: Include, context: Context) -> Iterator[Finding | Edit]:
    """`#include NAME` where this file does not define NAME as a header's name."""
    value = context.options.defines.get(include.macro, "").strip()
    path = value[1:-1] if value[:1] + value[-1:] in ("<>", '""') else ""
    entry = context.mapping.include(path) if path else None
    if entry is not None and entry.target:
        yield unit.finding_at(
            "include-macro",
            "warning",
            include.start,
            include.macro,
            f"-D{include.macro}={value} names a CUDA header",
            f"build the converted tree with -D{include.macro}=<{entry.target}>",
        )
    elif include.macro.encode() not in context.project.declared:
        yield unit.finding_at(
            "include-macro",
            "warning",
            include.start,
            include.macro,
            f"which header #include {include.macro} names is not known here",
            f"say it with -D{include.macro}=…, so that a CUDA header in it is seen",
        )


def own_file(path: str, included: str, context: Context, *, angled: bool) -> str | None:
    """The project's own file that an include in file `path` names; None where a vendor's is meant.

    A file of the tree is given relative to it, one that `-I` finds elsewhere as an absolute path.
    """
    files = context.project.files
    if not angled:
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), included))
        if beside in files:
            return beside
    vendors = context.mapping.include(included) is not None
    for folder in context.options.include_dirs:
        found = os.path.realpath(os.path.join(folder, included))
        inside = _inside(found, context.root)
        if inside is not None and inside in files:
            return inside
        if inside is None and not vendors and os.path.isfile(found):
            return found
    return None if vendors else context.project.by_tail(included)


def runtime_files(includes: Mapping[str, Facts], context: Context) -> frozenset[str]:
    """Which files of the tree have the whole HIP runtime header, directly or through others."""
    having: set[str] = set()
    includers: dict[str, list[str]] = {}
    for path, facts in includes.items():
        for included, angled in facts.includes:
            own = own_file(path, included, context, angled=angled)
            if own is not None:
                includers.setdefault(own, []).append(path)
                continue
            entry = context.mapping.include(included)
            target = entry.target if entry else included
            if target == RUNTIME or (target == _RUNTIME_API and path.endswith(KERNEL_SUFFIXES)):
                having.add(path)
    waiting = list(having)
    while waiting:
        for path in includers.get(waiting.pop(), ()):
            if path not in having:
                having.add(path)
                waiting.append(path)
    return frozenset(having)


def _inside(path: str, root: str) -> str | None:
    relative = os.path.relpath(path, root)
    return None if relative.startswith("..") else relative.replace(os.sep, "/")


def _missing(unit: Unit, include: Include, context: Context) -> Finding:
    tried = ", ".join(f"-I {folder}" for folder in context.options.include_dirs) or "no -I given"
    return unit.finding_at(
        "include-missing",
        "error",
        include.start,
        include.path,
        f"{include.path} is neither a header of CUDA's nor found in the tree (tried: the folder of "
        f"{unit.path}, the tree, {tried})",
        "give its folder with -I, or an entry for it with --map",
    )


def insert(unit: Unit, header: str) -> tuple[Edit, int]:
    """An edit that includes `header` (with its quotes) ahead of all code, and the lines it adds.

    A blank line or the beginning of a comment takes it up where the file has one there, so that
    no line moves. Otherwise it becomes the first line and a `#line` keeps the numbers.
    """
    directive = b"#include " + header.encode("utf-8", "surrogateescape")
    blank, comment = _free_places(unit.data, _preamble_end(unit))
    if blank is not None:
        return Edit(blank, blank, directive), 0
    if comment is not None:
        return Edit(comment, comment, directive + b" "), 0
    end = b"\r\n" if b"\r\n" in unit.data else b"\n"
    start = len(lexer.UTF8_BOM) if unit.data.startswith(lexer.UTF8_BOM) else 0
    return Edit(start, start, directive + end + b"#line 1" + end), 2


def _preamble_end(unit: Unit) -> int:
    """The offset of the first token that a header has to come before."""
    index = 0
    found = unit.directives
    for place, directive in enumerate(found):
        if directive.first != index:
            break
        words = [unit.text(i) for i in range(directive.first + 1, directive.last)]
        after = found[place + 1] if place + 1 < len(found) else None
        guards = (
            words[:1] == [b"ifndef"]
            and after is not None
            and after.name == b"define"
            and after.first == directive.last
            and [unit.text(i) for i in after.body] == words[1:]
        )
        opened = words[:1] == [b"define"] and len(words) == 2 and place > 0
        opened = opened and found[place - 1].name == b"ifndef"
        if words != [b"pragma", b"once"] and not guards and not opened:
            break
        index = directive.last
    return unit.tokens.starts[index] if index < len(unit.tokens) else len(unit.data)


_PIECE = re.compile(
    rb"//[^\\\n]*(?:\\(?:[ \t]*\r?\n)?[^\\\n]*){0,200}|/\*[\s\S]*?(?:\*/|\Z)|\\[ \t]*\r?\n|.|\n"
)
_BLANK = re.compile(rb"[ \t]*(?=\r?\n)")


def _free_places(data: bytes, end: int) -> tuple[int | None, int | None]:
    """The last blank line and the first comment that begins a line, before offset `end`."""
    blank = comment = None
    position = len(lexer.UTF8_BOM) if data.startswith(lexer.UTF8_BOM) else 0
    at_line_start = True
    while position < end:
        match = _PIECE.match(data, position)
        if match is None:
            break
        piece = match[0]
        if at_line_start:
            if _BLANK.match(data, position, end):
                blank = position
            elif piece.startswith((b"//", b"/*")) and comment is None:
                comment = position
        at_line_start = piece == b"\n"
        position = match.end()
    return blank, comment
