"""A time of day that jumps, for programs of a test alone: see clock.c."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
import sys
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock.c")


def missing() -> str:
    """What the machine lacks for this rig; empty where it has all of it."""
    if sys.platform != "linux":
        return "LD_PRELOAD as Linux has it"
    return "" if shutil.which("cc") else "no C compiler"


class Clock:
    """What programs started with `variables` take for the time of day; as it is, at first."""

    def __init__(self, folder: Path) -> None:
        library = folder / "clock.so"
        command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", str(_SOURCE), "-ldl"]
        subprocess.run([*command, "-o", str(library)], check=True)
        path = folder / "clock"
        path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 8)
        self.variables = {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(path)}

    def jump(self, seconds: int) -> None:
        """Let it be off by so many seconds from now on."""
        self._shared[:8] = struct.pack("q", seconds)
