"""What a build is asked for: read once from the environment, then passed on as a value."""

from __future__ import annotations

from dataclasses import dataclass
from platform import machine
from typing import TYPE_CHECKING

from port.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

PLATFORMS = ("cpu", "cuda", "rocm")

SOURCES = ("any", "installed", "packages")
"""Where a toolchain may come from: `packages` hides installed toolkits and uses the packages of
PyPI (CUDA) or Debian (ROCm); `installed` never fetches anything; `any` prefers an installed one."""

HOSTS = ("system", "zig")
"""The C++ compiler of host code: the system's, or zig with glibc 2.28 as the floor."""


TAG = "manylinux_2_28"
"""The tag of releases, which zig reaches on any machine."""


@dataclass(frozen=True, slots=True)
class Request:
    """The choices of one build.

    `architectures` is the text of GPU_ARCHITECTURES, or None for the defaults. `rocm` is the ROCm
    release wanted (`6.4`), or None for whichever is found. `cross` builds for GPUs that this
    machine does not have. `release` builds with zig, and demands the platform tag `TAG`.
    """

    platform: str
    architectures: str | None = None
    source: str = "any"
    rocm: str | None = None
    cross: bool = False
    host: str = "system"
    release: bool = False

    @property
    def tag(self) -> str:
        """The platform tag that has to be reached, or "auto" for the oldest that there is."""
        return f"{TAG}_{machine()}" if self.release else "auto"

    @classmethod
    def read(cls, platform: str, environ: Mapping[str, str]) -> Request:
        """The request that the environment makes for a platform.

        Raises:
            InputError: a variable holds a value it cannot have.

        """
        if platform not in PLATFORMS:
            raise InputError(
                f"GPU_PLATFORM={platform!r}: wanted one of {', '.join(PLATFORMS)}; "
                "set it to the platform to build for"
            )
        return cls(
            platform=platform,
            architectures=environ.get("GPU_ARCHITECTURES") or None,
            source=_one_of(environ, "GPU_TOOLCHAIN", SOURCES),
            rocm=environ.get("GPU_ROCM_RELEASE") or None,
            cross=_flag(environ, "GPU_CROSS_BUILD"),
            host=_one_of(environ, "GPU_HOST_COMPILER", HOSTS),
        )

    def environment(self) -> dict[str, str]:
        """The variables that make `read` give this request again."""
        return {
            "GPU_PLATFORM": self.platform,
            "GPU_ARCHITECTURES": self.architectures or "",
            "GPU_TOOLCHAIN": self.source,
            "GPU_ROCM_RELEASE": self.rocm or "",
            "GPU_CROSS_BUILD": "1" if self.cross else "0",
            "GPU_HOST_COMPILER": self.host,
        }


def _one_of(environ: Mapping[str, str], variable: str, values: tuple[str, ...]) -> str:
    value = environ.get(variable) or values[0]
    if value not in values:
        raise InputError(f"{variable}={value!r}: wanted one of {', '.join(values)}")
    return value


def _flag(environ: Mapping[str, str], variable: str) -> bool:
    value = environ.get(variable) or "0"
    if value not in ("0", "1"):
        raise InputError(f"{variable}={value!r}: wanted 0 or 1")
    return value == "1"
