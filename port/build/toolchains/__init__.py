"""Toolchains: an installed toolkit, else one made of packages without touching the system."""

from __future__ import annotations

from port.build.toolchains.find import find, requirements
from port.build.toolchains.model import Toolchain

__all__ = ["Toolchain", "find", "requirements"]
