"""The record of a conversion in its output folder, and the proof that the folder is its output."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from port.hipify.findings import Finding, of_file
from port.hipify.options import VERSION, Options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FOLDER = ".hipify"
"""The tool's own folder in an output folder; never an input."""

FILE = "manifest.json"

COMPAT_HEADER = "port_hip_compat.h"
"""Where the generated header of `port.hipify.compat` lies in an output folder."""


def digest(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def build(
    options: Options, sources: Mapping[str, str], outputs: Mapping[str, tuple[bytes, int]]
) -> dict[str, Any]:
    """The manifest: hashes of each source and output by path, and what the conversion was told.

    `sources` has no entry for a file that was generated (the compat header).
    """
    return {
        "schema": 1,
        "tool": f"port.hipify {VERSION}",
        "options": asdict(options),
        "files": {
            path: {"source": sources.get(path), "output": digest(data)}
            for path, (data, _) in outputs.items()
        },
    }


def read(out: Path) -> dict[str, Any]:
    """The manifest of an output folder, empty where there is none that can be read."""
    try:
        data = json.loads((out / FOLDER / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    is_one = isinstance(data, dict) and isinstance(data.get("files"), dict)
    return data if is_one and isinstance(data.get("options"), dict) else {}


def check(source: Path, out: Path) -> tuple[Finding, ...]:
    """Whether `out` is what converting `source` gives; the findings say what is not, none if it is.

    Compares hashes with the manifest first, then converts `source` again as the manifest says, in
    memory, and compares the bytes. `file` of a finding is relative to `source` or `out`. Raises
    InputError where `source` cannot be read.
    """
    manifest = read(out)
    if not manifest:
        return (
            of_file(
                f"{FOLDER}/{FILE}",
                "manifest-missing",
                f"{out} has no manifest of a conversion that can be read",
                f"convert again: python -m port.hipify {source} -o {out}",
            ),
        )
    by_hash = tuple(_compare_hashes(source, out, manifest["files"]))
    return by_hash or tuple(_compare_again(source, manifest))


def _compare_hashes(source: Path, out: Path, files: Mapping[str, Any]) -> Iterator[Finding]:
    present = set(_files(source)) if source.is_dir() else {source.name}
    root = source if source.is_dir() else source.parent
    outputs = set(_files(out))
    for path in sorted(present - set(files)):
        yield of_file(path, "source-added", "is not in the manifest of the output", _AGAIN)
    for path in sorted(outputs - set(files)):
        yield of_file(path, "output-extra", "is not made from a source", _BY_HAND)
    for path, entry in sorted(files.items()):
        if path not in outputs:
            yield of_file(path, "output-missing", "is in the manifest, but gone", _AGAIN)
        elif _hash_of(out / path) != entry.get("output"):
            yield of_file(path, "output-edited", "is not as it was written", _BY_HAND)
        if entry.get("source") is None:
            continue
        if path not in present:
            yield of_file(path, "source-removed", "has an output, but no source", _AGAIN)
        elif _hash_of(root / path) != entry["source"]:
            yield of_file(path, "source-changed", "changed since it was converted", _AGAIN)


_AGAIN = "convert the sources again"
_BY_HAND = "make the change in the sources and convert them again"


def _compare_again(source: Path, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    from port.hipify import engine, overrides  # noqa: PLC0415 - they build on this module

    options = options_of(manifest["options"])
    conversion = engine.convert_tree(source, options, overrides.chosen(options))
    for path, (data, _) in sorted(conversion.outputs.items()):
        if path not in manifest["files"] or digest(data) != manifest["files"][path]["output"]:
            yield of_file(path, "stale-output", "is not what this version makes of it", _AGAIN)
    for path in sorted(set(manifest["files"]) - set(conversion.outputs)):
        yield of_file(path, "stale-output", "is not made by this version any more", _AGAIN)


def options_of(recorded: Mapping[str, Any]) -> Options:
    """The options in a manifest."""
    known = {name: value for name, value in recorded.items() if name in Options.__slots__}
    lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
    return Options(**{**known, **lists})


def _files(folder: Path) -> Iterator[str]:
    """Paths of all files below `folder`, relative to it, the tool's own folder left out."""
    for place, folders, names in os.walk(folder):
        relative = os.path.relpath(place, folder)
        if relative == ".":
            folders[:] = [name for name in folders if name != FOLDER]
        for name in names:
            yield name if relative == "." else f"{relative}/{name}"


def _hash_of(path: Path) -> str | None:
    try:
        return digest(path.read_bytes())
    except OSError:
        return None
