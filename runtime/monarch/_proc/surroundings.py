"""What processes have in common with the one that starts them."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["modules", "surroundings"]

_NOT_CARRIED = {"__main__", "cli", "doctor", "testing"}  # modules of ours a process has no use for


def surroundings() -> dict[str, Any]:
    """What a process has in common with its parent, so that the same modules are found."""
    path = [entry if entry == "" else os.path.abspath(entry) for entry in sys.path]
    found: dict[str, Any] = {
        "path": path,
        "argv": list(sys.argv),
        "interpreter": (sys.version, sys.prefix, sys.base_prefix),
    }
    try:
        found["cwd"] = os.getcwd()
    except FileNotFoundError:
        pass  # a folder that was removed: processes keep the zygote's
    return found


def modules() -> list[str]:
    """Modules of ours that are loaded here: processes will want the same."""
    found = []
    for name in list(sys.modules):
        package, _, rest = name.partition(".")
        if package == "monarch" and rest.partition(".")[0] not in _NOT_CARRIED:
            found.append(name)
    return found
