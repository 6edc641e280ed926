"""Fixtures that several parts of the suite share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ci import built

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytest_plugins = ["monarch.testing"]


@pytest.fixture(scope="session")
def built_wheel() -> Callable[[str], Path]:
    """`built_wheel("rocm")`: the repaired wheel of this tree, built once for each content."""
    return built.wheel
