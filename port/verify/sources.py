"""V23: native/hip is what port.hipify makes of native/cuda, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.errors import InputError
from port.hipify import convert, output
from port.hipify.tree import RECORD_FOLDER
from port.verify.report import failed, passed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from port.verify.report import Check

_AGAIN = "nox -s hipify (python -m port.hipify native/cuda -o native/hip), and commit the result"


def check_sources(root: Path) -> Iterator[Check]:
    """Convert `root`/native/cuda again in memory and compare.

    Raises InputError where there is no such folder.
    """
    source, out = root / "native/cuda", root / "native/hip"
    if not source.is_dir():
        raise InputError(f"{source}: no such folder; --sources wants the one that holds native/")
    manifest = output.read_manifest(out)
    if not manifest:
        yield failed("V23", f"{out / output.MANIFEST} is missing or cannot be read", _AGAIN)
        return
    release = str(manifest.get("release", ""))
    outcome = convert(source, out, rocm=release, check=True)
    held = manifest.get("files")
    recorded = held if isinstance(held, dict) else {}
    found = list(_differences(outcome.changes, recorded, out))
    found += [
        (each.file, f"{each.line}:{each.column}: {each.message}" if each.line else each.message)
        for each in outcome.conversion.findings
        if each.severity == "error"
    ]
    found += [
        (name, "port.hipify did not write it")
        for name in _files(out)
        if name not in recorded and name not in outcome.conversion.outputs
    ]
    for name, detail in found:
        yield failed("V23", detail, _AGAIN, f"native/hip/{name}")
    if not found:
        yield passed(
            "V23",
            f"{len(recorded)} files of native/hip are what port.hipify makes of native/cuda "
            f"for ROCm {release}",
        )


def _differences(
    changes: output.Changes, recorded: dict[str, dict[str, str]], out: Path
) -> Iterator[tuple[str, str]]:
    """What is not as it should be, and whether the sources or a hand changed it."""
    for name in changes.pruned:
        yield name, "native/cuda has no source of it any more"
    for name in changes.written:
        path = out / name
        entry = recorded.get(name)
        if not path.is_file():
            yield name, "it is missing"
        elif entry and output.digest(path.read_bytes()) != entry.get("output"):
            yield name, "it was edited by hand: its hash is not the one in the manifest"
        else:
            yield name, "it is stale: its source, or the converter, has changed since"


def _files(out: Path) -> Iterator[str]:
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_file() and not name.startswith(f"{RECORD_FOLDER}/"):
            yield name
