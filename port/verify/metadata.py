"""What a wheel says of itself: METADATA, WHEEL, its file name, `_build_info.py`. Text only."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from email.parser import HeaderParser
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag, parse_tag
from packaging.utils import (
    InvalidWheelFilename,
    canonicalize_name,
    parse_wheel_filename,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TEXT = 16 << 20
_MAX_LITERAL = 4096


@dataclass(frozen=True, slots=True)
class Metadata:
    """Name and version as spelled, and the canonical names of required distributions."""

    name: str
    version: str
    requires: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WheelFile:
    """The WHEEL file's tags, and whether it says that all is pure Python."""

    tags: frozenset[str] = frozenset()
    pure: bool = False


@dataclass(frozen=True, slots=True)
class FileName:
    """A wheel's file name, parsed; `wrong` says why it could not be."""

    name: str = ""
    version: str = ""
    tags: frozenset[str] = frozenset()
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """Upper-case names that a `_build_info.py` sets to plain literals, and the file they are in."""

    file: str
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The value of `name` as text, empty where it is absent or not text."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    @property
    def architectures(self) -> tuple[str, ...]:
        value = self.values.get("ARCHITECTURES")
        if isinstance(value, tuple | list):
            return tuple(item for item in value if isinstance(item, str))
        return ()


def read_metadata(data: bytes) -> Metadata:
    """Parse a METADATA file; absent fields are empty."""
    fields = HeaderParser().parsestr(data.decode("utf-8", "replace"))
    requires = set()
    for line in fields.get_all("Requires-Dist", []):
        try:
            requires.add(str(canonicalize_name(Requirement(str(line)).name)))
        except InvalidRequirement:
            continue
    return Metadata(
        str(fields.get("Name", "")), str(fields.get("Version", "")), frozenset(requires)
    )


def read_wheel_file(data: bytes) -> WheelFile:
    """Parse a WHEEL file."""
    fields = HeaderParser().parsestr(data.decode("utf-8", "replace"))
    tags: set[Tag] = set()
    for line in fields.get_all("Tag", []):
        if str(line).count("-") == 2:
            tags |= parse_tag(str(line))
    return WheelFile(
        frozenset(map(str, tags)), str(fields.get("Root-Is-Purelib")).lower() == "true"
    )


def read_file_name(name: str) -> FileName:
    """Parse a wheel's file name."""
    try:
        project, version, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename as error:
        return FileName(wrong=str(error))
    return FileName(str(project), str(version), frozenset(map(str, tags)))


def read_build_info(file: str, data: bytes) -> BuildInfo:
    """The literals in a `_build_info.py`, one a line; the module is never run nor parsed whole."""
    values: dict[str, object] = {}
    for line in data[: 1 << 16].decode("utf-8", "replace").splitlines():
        found = re.match(r"([A-Z][A-Z0-9_]*)(?::[^=]*)?\s*=\s*(.+)", line)
        if found and len(found.group(2)) <= _MAX_LITERAL:
            try:
                values[found.group(1)] = ast.literal_eval(found.group(2))
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    return BuildInfo(file, values)
