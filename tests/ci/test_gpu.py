"""Which GPUs the device tests would run on, and with which wheel."""

from __future__ import annotations

import os

import pytest

from ci import gpu


def machine(root, *nodes):
    for node in nodes:
        path = root / node
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return [vendor.name for vendor in gpu.VENDORS if vendor.present(root)]


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ((), []),
        (("dev/nvidia0", "dev/nvidiactl"), ["nvidia"]),
        (("dev/nvidiactl",), []),
        (("dev/kfd", "dev/dri/renderD128"), ["amd"]),
        (("dev/dri/renderD128",), []),
        (("dev/nvidia3", "dev/nvidiactl", "dev/kfd", "dev/dri/renderD129"), ["nvidia", "amd"]),
    ],
)
def test_a_gpu_counts_when_all_its_device_nodes_are_there(tmp_path, nodes, found):
    assert machine(tmp_path, *nodes) == found


def test_the_newest_wheel_of_the_platform_is_taken(tmp_path):
    assert gpu.newest_wheel(tmp_path, "rocm") is None
    for age, name in enumerate(
        ("rocm6/monarch_rocm-1-b.whl", "monarch_rocm-1-a.whl", "monarch_cuda-1-a.whl")
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    assert gpu.newest_wheel(tmp_path, "rocm") == tmp_path / "rocm6/monarch_rocm-1-b.whl"
