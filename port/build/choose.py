"""Which platform a build is for: GPU_PLATFORM, else the sdist's name, else what is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.build.request import PLATFORMS, Request
from port.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PREFIX = "monarch-"


def request(tree: Path, environ: Mapping[str, str]) -> Request:
    """The request for the source tree `tree`.

    An unpacked sdist is of one platform, which its PKG-INFO names.

    Raises:
        InputError: GPU_PLATFORM is no platform, or another one than the sdist's; or it is not set
            and both CUDA and ROCm are installed.

    """
    asked = environ.get("GPU_PLATFORM")
    packed = _platform_of_sdist(tree)
    if asked is None and packed is None:
        from port.platform import detect  # noqa: PLC0415 - the backend stays light

        return Request.read(detect(environ).decision, environ)
    if asked is not None and packed is not None and asked != packed:
        raise InputError(
            f"GPU_PLATFORM={asked}, but this is the source distribution of {PREFIX}{packed}; "
            "unset GPU_PLATFORM, or take the other source distribution or the repository"
        )
    return Request.read(asked if asked is not None else str(packed), environ)


def _platform_of_sdist(tree: Path) -> str | None:
    path = tree / "PKG-INFO"
    if not path.is_file():
        return None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("Name:"):
            platform = line.removeprefix("Name:").strip().removeprefix(PREFIX)
            return platform if platform in PLATFORMS else None
    return None
