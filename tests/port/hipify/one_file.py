"""Converts one file's bytes in this process."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from port.hipify import declarations, includes, pipeline, tables
from port.hipify.context import Context
from port.hipify.facts import Project
from port.hipify.mapping import Mapping
from port.hipify.options import Options
from port.hipify.unit import Unit

if TYPE_CHECKING:
    from port.hipify.pipeline import Result


@cache
def _mapping(rocm: str, types: frozenset[str]) -> Mapping:
    return Mapping(rocm, types=types)


def convert(data: bytes, path: str = "a.cu", rocm: str = "6.4") -> Result:
    """The result of a project that has this one file."""
    unit = Unit(path, data)
    facts = declarations.gather(unit, tables.load_cuda())
    mapping = _mapping(rocm, facts.enumerations)
    project = Project.of([facts], [path])
    bare = Context(Options(rocm), mapping, mapping.cuda, mapping.hip, project)
    return pipeline.convert(unit, includes.with_graph(bare, {path: facts}))


def output(text: str, path: str = "a.cpp", rocm: str = "6.4") -> str:
    """The converted text of one file."""
    return convert(text.encode(), path, rocm).data.decode()


def reports(text: str, path: str = "a.cpp", rocm: str = "6.4") -> list[tuple[int, int, str, str]]:
    """(line, column, rule, name) of each error and warning."""
    found = convert(text.encode(), path, rocm).findings
    return [(f.line, f.column, f.rule, f.name) for f in found if f.severity != "note"]
