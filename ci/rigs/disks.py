"""Disks that are full soon: a program sees a few kilobytes where others see a folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SYS_ADMIN = 1 << 21
_MOUNT = 'mount -t tmpfs -o "size=$0" tmpfs "$1" && shift && exec "$@"'


def missing() -> str:
    """What the machine lacks for this rig; empty where it has all of it."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "disks are made by root, on Linux, with unshare (package util-linux)"
    status = Path("/proc/self/status").read_text(encoding="ascii")
    allowed = int(status.partition("CapEff:")[2].split()[0], 16)
    return "" if allowed & _SYS_ADMIN else "this root lacks CAP_SYS_ADMIN, as in containers"


def command(folder: Path, size: int, arguments: Sequence[str]) -> list[str]:
    """The command that runs another one, as the same process, with a disk of `size` bytes there.

    The disk is in a mount namespace of its own: it ends with the last process that has it.
    """
    private = ("unshare", "--mount", "--propagation", "private")
    return [*private, "sh", "-c", _MOUNT, str(size), str(folder), *arguments]
