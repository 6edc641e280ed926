"""V23: native/hip is what port.hipify makes of native/cuda, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.errors import InputError
from port.hipify import manifest
from port.text import counted
from port.verify.report import failed, passed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from port.verify.report import Check

SOURCE, OUTPUT = "native/cuda", "native/hip"


def check_sources(root: Path) -> Iterator[Check]:
    """Compare hashes, then convert `root`/native/cuda again in memory and compare the bytes.

    Raises:
        InputError: there is no such folder.

    """
    source, out = root / SOURCE, root / OUTPUT
    if not source.is_dir():
        raise InputError(f"{source}: no such folder; --sources wants the one that holds {SOURCE}")
    found = manifest.check(source, out)
    for each in found:
        yield failed(
            "V23",
            f"{each.rule}: {each.name} {each.message}",
            f"{each.remedy} (nox -s hipify), and commit the result",
            f"{OUTPUT}/{each.file}",
        )
    if not found:
        count = len(manifest.read(out)["files"])
        yield passed(
            "V23", f"{OUTPUT} ({counted(count, 'file')}) is what port.hipify makes of {SOURCE}"
        )
