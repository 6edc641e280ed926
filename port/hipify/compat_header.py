"""The compat header as a file: the pieces that a tree uses, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify import compat, legacy_blas, tables
from port.hipify.manifest import COMPAT_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from port.hipify.mapping import Mapping

HEADER = COMPAT_HEADER

_TOP = """\
/* Made by port.hipify for HIP {release}: calls and types that a rename cannot carry. */
#ifndef PORT_HIP_COMPAT_H
#define PORT_HIP_COMPAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <hip/hip_runtime_api.h>

#ifdef __cplusplus
extern "C++" {{
#endif
"""
_BOTTOM = """
#ifdef __cplusplus
}
#endif

#endif
"""


def render(names: Iterable[str], mapping: Mapping) -> bytes:
    """The header with the pieces for the CUDA names in `names`, each after what it needs.

    `name@7.1` stands for a name that only code behind a test for that release uses: its piece is
    made for that release, and put behind the same test. Names that the header does not carry are
    passed over.
    """
    texts: dict[str, str] = {}
    begun: set[str] = set()

    def add(name: str, release: str = "") -> None:
        if name in begun:
            return
        piece = legacy_blas.find(name, mapping) or compat.find(name, mapping)
        guard = ""
        if piece is None and release:
            piece = compat.find(name, mapping.at(release))
            guard = f"\n#if HIP_VERSION >= {tables.version_number(release)}"
        if piece is None and not release:
            piece = mapping.stand_in(name)
        if piece is None:
            return
        begun.add(name)
        for need in piece.needs:
            add(need, release)
        texts[name] = f"{guard}{piece.text}#endif\n" if guard else piece.text

    for each in sorted(names):
        name, _, release = each.partition("@")
        add(name, release)
    body = "".join(dict.fromkeys(text for text in texts.values() if text))
    return (_TOP.format(release=mapping.release) + body + _BOTTOM).encode()
