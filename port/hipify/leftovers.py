"""Files that are copied as they are, but name CUDA all the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify import build_files, python_files
from port.hipify.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = re.compile(
    rb"\b(?:cuda[A-Z]\w+|cu(?:Mem|Ctx|Device|Stream|Event|Launch|Init)\w*|CUDA_\w+)\b"
)
_SOURCES = (
    *(".pyx", ".pxd", ".pxi", ".m", ".mm", ".f", ".f90", ".cuf", ".go", ".rs", ".jl", ".swg", ".i"),
    *(".cl", ".in", ".tmpl", ".jinja", ".jinja2", ".template"),
)


def check(path: str, data: bytes) -> Iterator[Finding]:
    """What a copied file still says of CUDA."""
    if path.endswith(".py"):
        yield from python_files.check(path, data)
    if build_files.is_build_file(path):
        yield from build_files.check(path, data)
    elif path.lower().endswith(_SOURCES) and (match := _NAMES.search(data)):
        line = data.count(b"\n", 0, match.start()) + 1
        column = match.start() - data.rfind(b"\n", 0, match.start())
        suffix = path[path.rindex(".") :]
        yield Finding(
            path,
            line,
            column,
            "not-looked-at",
            "warning",
            match[0].decode(),
            f"names CUDA, but a file with the suffix {suffix} is copied as it is",
            f"convert it with --ext {suffix}",
        )
