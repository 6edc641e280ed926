"""Devices through the whole module: what the driver says arrives in Python."""

from __future__ import annotations

import json

import pytest

DESCRIBE = """
import dataclasses, json
from monarch import gpu
print(json.dumps([dataclasses.asdict(device) for device in gpu.devices()], default=str))
"""


def test_every_attribute_of_every_device_arrives(package):
    first, second = json.loads(package.run(DESCRIBE))
    assert first["name"] == "Stand-in GPU 0"
    assert first["uuid"] == "a5a5a5a5-a5a5-a5a5-a5a5-a5a5a5a5a500"
    assert first["pci_bus_id"] == "0000:10:00.0"
    assert first["total_memory"] == 1 << 30
    assert first["multiprocessors"] == 8
    assert first["wave_size"] == (32 if package.platform == "cuda" else 64)
    assert first["compute_capability"] == [9, 0]
    assert first["max_threads_per_block"] == 1024
    assert first["max_shared_memory_per_block"] == 49152
    assert first["l2_cache_bytes"] == 4 << 20
    assert second["ordinal"] == 1


def test_a_driver_without_devices_is_an_empty_list(package):
    bare = package.with_environment(MONARCH_STANDIN_DEVICES="0")
    assert json.loads(bare.run(DESCRIBE)) == []


def test_an_ordinal_too_large_is_refused_by_number(package):
    text = package.run(
        "from monarch import gpu\n"
        "for call in (lambda: gpu.device(2), lambda: gpu.Stream(7), lambda: gpu.device(-1)):\n"
        "    try:\n        call()\n"
        "    except gpu.GpuError as error:\n        print(error.code, error)\n"
    )
    lines = text.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("invalid_argument ") for line in lines)
    assert "no device 2; this process sees 2" in lines[0]


def test_free_memory_goes_down_and_up_again(package):
    text = package.run(
        "from monarch import gpu\n"
        "device = gpu.device(1)\n"
        "before, total = device.memory_info()\n"
        "with device.allocate(1 << 20):\n    print(before - device.memory_info()[0])\n"
        "print(before - device.memory_info()[0], gpu.device(0).memory_info()[0] == total)\n"
    )
    assert text.split() == [str(1 << 20), "0", "True"]


def test_peers_are_told(package):
    text = package.run(
        "from monarch import gpu\n"
        "a, b = gpu.devices()\n"
        "print(a.can_access(b), a.can_access(a))\n"
        "a.synchronize()\n"
    )
    assert text.split() == ["True", "False"]


def test_a_missing_library_is_named_with_a_remedy(package, tmp_path):
    alone = package.with_environment(LD_LIBRARY_PATH=str(tmp_path))
    text = alone.run(
        "from monarch import errors, gpu\n"
        "try:\n    print('found', gpu.devices())\n"
        "except errors.MonarchError as error:\n    print('error', error)\n"
    )
    if text.startswith("found"):
        pytest.skip("this machine has the genuine library")
    name = "libcuda.so.1" if package.platform == "cuda" else "libamdhip64.so"
    assert name in text
    assert "nstall" in text


def test_exactly_one_hip_runtime_is_mapped(package):
    if package.platform != "rocm":
        pytest.skip("CUDA's runtime is inside the module")
    text = package.run(
        "from monarch import gpu\n"
        "gpu.devices()\n"
        "paths = {l.split()[-1] for l in open('/proc/self/maps') if 'libamdhip64.so' in l}\n"
        "print(*paths)\n"
    )
    assert text.split() == [str(next(package.libraries.glob("libamdhip64.so.*")))]


def test_versions_are_what_the_wheel_was_built_for(package):
    text = package.run(
        "import monarch, importlib\n"
        "from monarch._gpu.load import native\n"
        "module = native()\n"
        "print(module.platform, *module.runtime_versions(), *module.driver_info())\n"
    )
    platform, compiled, running, library, version = text.split()
    assert platform == package.platform
    assert int(compiled) > 0
    assert int(version) > 0
    assert library.startswith(str(package.libraries))
    if platform == "cuda":
        assert compiled == running  # the runtime is inside


def test_a_kernel_on_a_stand_in_is_an_error_and_never_silent(package):
    text = package.run(
        "from monarch import gpu\n"
        "memory = gpu.device(0).allocate(64)\n"
        "try:\n    print('done', gpu.checksum(memory))\n"
        "except gpu.GpuError as error:\n    print('error', error.context)\n"
    )
    assert text.strip() == "error computing a checksum"
