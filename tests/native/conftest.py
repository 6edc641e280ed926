from __future__ import annotations

import pytest

from tests.native import harness


@pytest.fixture(scope="session", params=harness.PLATFORMS)
def package(request, tmp_path_factory, built_wheel):
    """The wheel of each platform, unpacked, with stand-ins in front of the loader's path."""
    platform = request.param
    wheel = built_wheel(platform)
    folder = tmp_path_factory.mktemp(platform)
    return harness.unpack(wheel, platform, folder / "package", folder / "standins")
