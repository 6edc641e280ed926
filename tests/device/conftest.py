"""Device tests run in the environment of an installed wheel, on the GPUs that it finds."""

from __future__ import annotations

import pytest

from monarch import gpu
from monarch.errors import MonarchError


@pytest.fixture(scope="session", autouse=True)
def _needs_a_gpu():
    try:
        found = gpu.devices()
    except MonarchError as error:
        pytest.skip(str(error))
    if not found:
        pytest.skip("the driver finds no GPU on this machine")


@pytest.fixture
def device():
    return gpu.devices()[0]


@pytest.fixture
def stream(device):
    with device.stream() as made:
        yield made
