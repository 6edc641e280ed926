"""What processes have in common with the one that starts them."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["modules", "standard_modules", "surroundings"]

_NOT_CARRIED = {"__main__", "cli", "doctor", "testing"}  # modules of ours a process has no use for

# Modules of the standard library that do more than define things when they are imported, or are of
# no use without a terminal.
_UNFIT = {
    *("__main__", "antigravity", "curses", "distutils", "idlelib", "lib2to3", "readline"),
    *("rlcompleter", "site", "test", "this", "tkinter", "turtle"),
}


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


def standard_modules() -> list[str]:
    """Modules of the standard library that are loaded here: so may be what processes will want."""
    home = os.path.dirname(os.__file__) + os.sep
    packages = home + "site-packages" + os.sep
    found = []
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if package in _UNFIT or package not in sys.stdlib_module_names:
            continue
        file = getattr(module, "__file__", None) or home  # built in
        if file.startswith(home) and not file.startswith(packages):
            found.append(name)  # and not a module of the program's under the same name
    return found
