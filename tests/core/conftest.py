"""The module `monarch._core`, as `ci.built` puts it beside the sources."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture(scope="session")
def core():
    return importlib.import_module("monarch._core")
