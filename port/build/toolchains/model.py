"""What a build needs to know of a GPU toolchain."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from port.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.version import Version


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler for GPU code with the runtime that its objects are linked with.

    `library` is the file that goes on the link line: libcudart_static.a or libamdhip64.so.
    `soname` is what the extension will need at run time, None when the runtime is linked in.
    `offered` are the architectures that the compiler has. `origin` says where it came from, and
    `digest` identifies what was fetched (empty for an installed toolkit). `loadable` holds the
    folders in which the runtime and what it needs lie, where the loader would not look by itself.
    """

    platform: str
    version: Version
    compiler: Path
    include: Path
    library: Path
    soname: str | None
    offered: tuple[str, ...]
    origin: str
    digest: str = ""
    loadable: tuple[Path, ...] = ()


def defined(header: Path, macro: str) -> int:
    """The number that `header` defines `macro` as.

    Raises:
        EnvironmentMissingError: the header is not there, or does not define it.

    """
    try:
        text = header.read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise EnvironmentMissingError(
            f"{header.name}: no such header in {header.parent} (the folder given to the compiler "
            f"as -I{header.parent}); install the toolkit's headers"
        ) from None
    found = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{macro}[ \t]+\(?(\d+)\)?", text, re.MULTILINE)
    if found is None:
        raise EnvironmentMissingError(
            f"{header}: does not define {macro}; the header is damaged or of another project"
        )
    return int(found[1])
