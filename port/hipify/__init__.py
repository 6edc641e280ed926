"""Convert CUDA C++ sources to HIP, and report what has no counterpart.

From Python:

    from port.hipify import convert
    outcome = convert("csrc", "hip", rocm="6.4")
    outcome.ok, outcome.conversion.findings, outcome.conversion.counts
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from port.hipify.api import Outcome

__all__ = ["convert"]


def convert(
    source: str | PathLike[str],
    out: str | PathLike[str],
    *,
    rocm: str = "6.4",
    check: bool = False,
    map_file: str | PathLike[str] | None = None,
    torch_map: bool = False,
    extensions: Sequence[str] = (),
    defines: Mapping[str, str] | None = None,
    include_dirs: Sequence[str | PathLike[str]] = (),
    headers: str | PathLike[str] | None = None,
) -> Outcome:
    """Convert `source`, a folder or one file, into the folder `out`; `check` writes nothing.

    The options are those of `python -m port.hipify`. What is left is in the outcome's findings.

    Raises:
        port.errors.InputError: a wrong place, release, map file or folder.
        port.errors.EnvironmentMissingError: `torch_map`, and no torch with tables is installed.
        port.errors.LimitError: the disk is full.

    """
    from port.hipify import api  # noqa: PLC0415 - the package's data modules are used without it
    from port.hipify.options import Options  # noqa: PLC0415

    options = Options(
        rocm,
        dict(defines or {}),
        tuple(str(folder) for folder in include_dirs),
        tuple(extensions),
        str(map_file) if map_file else None,
        torch_map,
        str(headers) if headers else None,
    )
    return api.convert(Path(source), Path(out), options, check=check)
