"""Facts of the checkout that several sessions share."""

from __future__ import annotations

import tomllib
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
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requirements: list[str] = data["project"]["dependencies"]
    return requirements
