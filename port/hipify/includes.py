"""Includes: which header is meant, what it becomes, and where a missing one goes."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from port.hipify import pasted
from port.hipify.rewrite import Edit
from port.hipify.unit import KERNEL_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from port.hipify.context import Context
    from port.hipify.facts import Facts
    from port.hipify.findings import Finding
    from port.hipify.preprocess import Include
    from port.hipify.unit import Unit

RUNTIME = "hip/hip_runtime.h"
RUNTIME_API = "hip/hip_runtime_api.h"

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
            if entry.instead and not include.test:
                target = _target(unit, include, entry.instead)
                yield Edit(include.start, include.end, f"<{target}>".encode(), header=target)
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
                new = text.encode("utf-8", "surrogateescape")
                header, piece = ("", None) if include.test else (target, entry.piece)
                compat = (piece,) if piece else ()
                yield Edit(include.start, include.end, new, compat, header)


def _target(unit: Unit, include: Include, target: str) -> str:
    # nvcc gives every kernel file the whole runtime header, also where it asks for the API alone.
    if target == RUNTIME_API and unit.is_kernel_file and not include.test:
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
    elif os.fsencode(include.macro) not in context.project.declared:
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


def with_graph(context: Context, facts: Mapping[str, Facts]) -> Context:
    """`context` with what follows from which file of the tree includes which."""
    having: set[str] = set()
    namespaces: dict[str, str] = {}
    includers: dict[str, list[str]] = {}
    for path, each in facts.items():
        for included, angled in each.includes:
            own = own_file(path, included, context, angled=angled)
            if own is not None:
                includers.setdefault(own, []).append(path)
                continue
            entry = context.mapping.include(included)
            target = entry.target if entry else included
            space = context.mapping.namespace(included.partition("/")[0]) if entry else None
            if space is not None and space.target:
                namespaces[space.name] = space.target
            if target == RUNTIME or (target == RUNTIME_API and path.endswith(KERNEL_SUFFIXES)):
                having.add(path)
    fragments: dict[str, frozenset[str]] = {}
    for path, each in facts.items():
        if each.used:
            names = frozenset(name.decode("utf-8", "surrogateescape") for name in each.used)
            for includer in _upward([path], includers) - {path}:
                fragments[includer] = fragments.get(includer, frozenset()) | names
    return replace(
        context,
        runtime_files=frozenset(_upward(having, includers)),
        fragments=fragments,
        namespaces=namespaces,
        pasted=pasted.resolve(facts, context.mapping),
    )


def _upward(paths: Iterable[str], includers: Mapping[str, Sequence[str]]) -> set[str]:
    """`paths` and every file that includes one of them, directly or through others."""
    found = set(paths)
    waiting = list(found)
    while waiting:
        for path in includers.get(waiting.pop(), ()):
            if path not in found:
                found.add(path)
                waiting.append(path)
    return found


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
