"""Facts of the checkout that several sessions share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import nox

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")


def group(*names: str) -> Sequence[str]:
    """The pinned requirements of dependency groups of pyproject.toml."""
    return nox.project.dependency_groups(PYPROJECT, *names)


def run_time_requirements() -> Sequence[str]:
    """What the distributions themselves depend on."""
    requirements: list[str] = PYPROJECT["project"]["dependencies"]
    return requirements


def build_requirements() -> Sequence[str]:
    """What the build backend needs on every platform."""
    requirements: list[str] = PYPROJECT["build-system"]["requires"]
    return requirements
