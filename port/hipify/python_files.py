"""Python files: they are copied, and may still open CUDA's libraries by name (ctypes, cffi)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.hipify.findings import Finding
from port.hipify.lexer import STRING
from port.hipify.rules import libraries
from port.hipify.rules.tokens import of_kind
from port.hipify.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAY_NAME = re.compile(rb"cuda|nvrtc|nvidia|nccl|cublas|cufft|curand|cusparse|cusolver|cudnn|cupti")
_TEXT = re.compile(rb"""[A-Za-z]{0,2}(?P<quote>'''|\"\"\"|'|\")(?P<text>.*)(?P=quote)""", re.DOTALL)
_FINDER = b"find_library"


def check(path: str, data: bytes) -> Iterator[Finding]:
    """Each string that names a CUDA library, whole or as `find_library("cuda")`."""
    if not _MAY_NAME.search(data):
        return
    source = Source(path, data)
    for index in of_kind(source, STRING):
        match = _TEXT.fullmatch(source.text(index))
        if match is None:
            continue
        name = text = match["text"].decode("utf-8", "replace")
        if source.text(index - 1) == b"(" and source.text(index - 2) == _FINDER:
            text = f"lib{name}.so"
        if not libraries.is_cuda_library(text):
            continue
        wanted = libraries.counterpart(text)
        hint = f"open {wanted} on ROCm" if wanted else "HIP has no library for this one"
        line, column = source.position(source.tokens.starts[index])
        yield Finding(
            path,
            line,
            column,
            "library-name",
            "warning",
            name,
            f"the string names the CUDA library {name}, which is not there on ROCm",
            f"{hint}; Python files are copied as they are",
        )
