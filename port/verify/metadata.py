"""What a wheel says of itself: METADATA, WHEEL, its file name, `_build_info.py`. Text only."""

from __future__ import annotations

import ast
import re
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TEXT = 16 << 20
_MAX_LITERAL = 4096
_REQUIRED_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_TAG = re.compile(r"[^-]+-[^-]+-[^-]+$")
_WHEEL_NAME = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-(?P<version>[^-]+)"
    r"(?:-(?P<build>\d[^-]*))?-(?P<tags>[\w.]+-[\w.]+-[\w.]+)\.whl",
    re.ASCII,
)


class Metadata(NamedTuple):
    """Name and version as spelled, and the canonical names of required distributions."""

    name: str
    version: str
    requires: frozenset[str] = frozenset()


class WheelFile(NamedTuple):
    """The WHEEL file's tags, and whether it says that all is pure Python."""

    tags: frozenset[str] = frozenset()
    pure: bool = False


class FileName(NamedTuple):
    """A wheel's file name, parsed; `wrong` says why it could not be."""

    name: str = ""
    version: str = ""
    tags: frozenset[str] = frozenset()
    wrong: str = ""


class BuildInfo(NamedTuple):
    """Upper-case names that a `_build_info.py` sets to plain literals, and the file they are in."""

    file: str
    values: Mapping[str, object]

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


def canonical(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _tags(text: str) -> frozenset[str]:
    """The tags that a compressed set such as `py2.py3-none-any` stands for."""
    parts = (part.lower().split(".") for part in text.split("-"))
    return frozenset(map("-".join, product(*parts)))


def _fields(data: bytes) -> dict[str, list[str]]:
    """Header fields by lower-case name, each with its values; the text behind them is left out.

    The standard library's parser does the same, but loading it costs more than a small wheel.
    """
    found: dict[str, list[str]] = {}
    last: list[str] = []
    for line in data.decode("utf-8", "replace").splitlines():
        if not line.strip():
            break
        if line[0] in " \t" and last:
            last[-1] += f" {line.strip()}"
            continue
        name, separator, value = line.partition(":")
        if separator:
            last = found.setdefault(name.strip().lower(), [])
            last.append(value.strip())
    return found


def read_metadata(data: bytes) -> Metadata:
    """Parse a METADATA file; absent fields are empty."""
    fields = _fields(data)
    requires = {
        canonical(named.group())
        for line in fields.get("requires-dist", [])
        if (named := _REQUIRED_NAME.match(line))
    }
    name, version = (fields.get(key, [""])[0] for key in ("name", "version"))
    return Metadata(name, version, frozenset(requires))


def read_wheel_file(data: bytes) -> WheelFile:
    """Parse a WHEEL file."""
    fields = _fields(data)
    tags = (_tags(line) for line in fields.get("tag", []) if _TAG.match(line))
    return WheelFile(
        frozenset().union(*tags), fields.get("root-is-purelib", [""])[0].lower() == "true"
    )


def read_file_name(name: str) -> FileName:
    """Parse a wheel's file name: NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl.

    `packaging.utils` does the same, but loading it costs more than a small wheel.
    """
    found = _WHEEL_NAME.fullmatch(name)
    if found is None or "__" in found["name"]:
        return FileName(wrong=f"{name!r} is not NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl")
    if not all(re.split(r"[-.]", found["tags"])):
        return FileName(wrong=f"{name!r} has an empty tag: {found['tags']}")
    try:
        version = Version(found["version"])
    except InvalidVersion:
        return FileName(wrong=f"{name!r} has a version that is none: {found['version']}")
    return FileName(canonical(found["name"]), str(version), _tags(found["tags"]))


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
