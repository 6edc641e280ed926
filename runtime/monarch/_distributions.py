"""Which installed distributions claim this package.

The distributions `monarch-cpu`, `monarch-cuda` and `monarch-rocm` hold files of the same names, as
do `torchmonarch` and an older, unrelated `monarch`: the one installed last overwrites the others,
and installers say nothing. Each of ours leaves a marker file named after its platform. This looks
at names in a few folders only: it runs on every import, so it imports and reads nothing.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MARKER = "_platform_"
FOREIGN = ("torchmonarch", "monarch")


def claimants(package: Iterable[str]) -> dict[str, str]:
    """Distributions that claim the package, each with the folder it was seen in.

    `package` is the package's `__path__`. Copies in other folders of the search path overwrite
    nothing and are not looked for.
    """
    found: dict[str, str] = {}
    for folder in package:
        for name in _names(folder):
            if name.startswith(MARKER):
                found.setdefault(f"monarch-{name.removeprefix(MARKER)}", folder)
        beside = os.path.dirname(folder)  # noqa: PTH120
        for name in _names(beside):
            project = name.partition("-")[0]
            if project in FOREIGN and name.endswith((".dist-info", ".egg-info")):
                found.setdefault(project, beside)
    return found


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def complaint(found: dict[str, str], installed: str | None) -> str:
    """What is wrong and the commands that repair it; `installed` is the platform to keep."""
    names = sorted(found)
    ours = [name for name in names if name not in FOREIGN]
    keep = f"monarch-{installed}" if installed else (ours or names)[-1]
    where = ", ".join(sorted(set(found.values())))
    python = sys.executable or "python"
    return (
        f"{' and '.join(names)} are both installed (in {where}), and each of them holds the "
        "package `monarch`: the one installed last has overwritten files of the other. "
        f"Remove them and install the one you want, {keep} say:\n"
        f"  {python} -m pip uninstall --yes {' '.join(names)}\n"
        f"  {python} -m pip install {keep}"
    )
