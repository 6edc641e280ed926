"""The table of HIP headers at hand, on request: the shipped prototypes of the names they hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.errors import InputError
from port.hipify import tables
from port.hipify.unit import Unit

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIXES = (".h", ".hpp")
# The folders of an include folder that hold what CUDA's headers have a counterpart for.
_FOLDERS = (
    *("hip", "hiprand", "hipblas", "hipblas-common", "hipblaslt", "hipfft", "hipsparse"),
    *("hipsolver", "hipcub", "rccl", "roctracer"),
)
_VERSION = re.compile(rb"#define\s+HIP_VERSION_(MAJOR|MINOR)\s+(\d+)")


def release_of(folder: Path) -> str:
    """The release whose headers are in the include folder `folder`.

    Raises:
        InputError: `hip/hip_version.h` cannot be read, or names no release.

    """
    path = folder / "hip" / "hip_version.h"
    try:
        found = dict(_VERSION.findall(path.read_bytes()))
    except OSError as error:
        raise InputError(
            f"--headers {folder}: {path} cannot be read ({error.strerror}); wanted the include "
            "folder of a ROCm, such as /opt/rocm/include"
        ) from None
    if len(found) != 2:
        raise InputError(f"--headers {folder}: {path} does not say which release it is of")
    return f"{found[b'MAJOR'].decode()}.{found[b'MINOR'].decode()}"


def table(folder: Path) -> tables.Table:
    """The names that the headers in `folder` hold, as far as a shipped table knows their kind."""
    nearest = tables.nearest_release(release_of(folder))
    paths = [
        path
        for each in _FOLDERS
        for path in sorted((folder / each).rglob("*"))
        if path.suffix in _SUFFIXES and path.is_file()
    ]
    names: set[str] = set()
    for path in paths:
        names.update(
            name.decode("utf-8", "replace") for name in Unit(path.name, path.read_bytes()).names
        )
    headers = [str(path.relative_to(folder)) for path in paths]
    shipped = tables.load_hip(nearest)
    # Device arithmetic comes from the compiler's headers, not from HIP's.
    names.update(name for name in shipped if _is_compilers(shipped, name))
    others = [tables.load_hip(each) for each in reversed(tables.RELEASES) if each != nearest]
    return shipped.limited_to(names, headers, others)


def _is_compilers(shipped: tables.Table, name: str) -> bool:
    declared = shipped.get(name)
    return declared is not None and declared.header.startswith("__clang")
