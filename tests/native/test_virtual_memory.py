"""Virtual memory: mappings, and memory shared between processes by descriptor."""

from __future__ import annotations

import socket

import pytest

from tests.native.harness import HIP_5_7, PROGRAMS, finish
from tests.native.test_memory import run

LOW_LEVEL = """
from monarch._gpu.load import native
module = native()
page = module.virtual_memory_granularity(0)

def write(address, data):
    module.copy_to_device(0, address, data)

def read(address, count):
    target = bytearray(count)
    module.copy_to_host(0, target, address)
    return bytes(target)
"""


def test_two_mappings_of_one_memory_are_one_memory(package):
    assert run(
        package,
        LOW_LEVEL
        + """
physical = module.PhysicalMemory.create(0, page)
space = module.AddressRange.reserve(0, 3 * page)
for offset in (0, 2 * page):
    space.map(offset, physical)
    space.set_access(offset, page, 0)
write(space.address + 5, b'seen twice')
print(read(space.address + 2 * page + 5, 10) == b'seen twice')
physical.release()
write(space.address + 2 * page, b'!')
print(read(space.address, 1) == b'!')
space.unmap(0)
print(code(lambda: read(space.address, 1)), read(space.address + 2 * page, 1) == b'!')
""",
    ) == ["True", "True", "invalid_argument", "True"]


def test_nothing_is_accessible_before_access_is_set(package):
    assert run(
        package,
        LOW_LEVEL
        + """
physical = module.PhysicalMemory.create(0, page)
space = module.AddressRange.reserve(0, page)
print(code(lambda: read(space.address, 1)))
space.map(0, physical)
print(code(lambda: read(space.address, 1)))
space.set_access(0, page, 0)
print(code(lambda: read(space.address, 1)))
""",
    ) == ["invalid_argument", "invalid_argument", "no", "error"]


def test_wrong_ranges_are_refused(package):
    assert (
        run(
            package,
            LOW_LEVEL
            + """
physical = module.PhysicalMemory.create(0, page)
space = module.AddressRange.reserve(0, 2 * page)
print(code(lambda: module.PhysicalMemory.create(0, page + 1)))
print(code(lambda: module.AddressRange.reserve(0, 0)))
print(code(lambda: space.map(2 * page, physical)))
space.map(0, physical)
print(code(lambda: space.map(0, physical)))
print(code(lambda: space.unmap(page)))
print(code(lambda: space.set_access(page, 2 * page, 0)))
physical.release()
print(code(lambda: space.map(page, physical)))
space.release()
print(code(lambda: space.map(0, physical)))
""",
        )
        == ["invalid_argument"] * 8
    )


def test_plain_memory_has_no_descriptor(package):
    assert run(package, "print(code(lambda: device.allocate(8).export_fd()))\n") == ["unsupported"]


def test_memory_is_shared_between_processes_both_ways_and_outlives_its_owner(package):
    owner_end, peer_end = socket.socketpair()
    program = PROGRAMS / "share.py"
    owner = package.start(program, "owner", str(owner_end.fileno()), pass_fds=[owner_end.fileno()])
    peer = package.start(program, "peer", str(peer_end.fileno()), pass_fds=[peer_end.fileno()])
    owner_end.close()
    peer_end.close()
    assert finish(owner).split() == ["owner", "sees", "answer"]
    assert finish(peer).split() == ["peer", "sees", "question", "peer", "still", "sees", "question"]


def test_a_dma_buffer_is_given_where_the_driver_has_it(package):
    answer = run(
        package,
        """
import os
memory = device.allocate(8192, shareable=True)
try:
    descriptor, offset = memory.dma_buffer()
    print(os.fstat(descriptor).st_size >= 8192, offset)
except gpu.GpuError as error:
    print(error.code, error)
""",
    )
    modern = package.platform == "cuda" or (package.libraries / "libamdhip64.so.7").exists()
    if modern:
        assert answer == ["True", "0"]
    else:
        # The older way is the HSA runtime's, which no stand-in brings.
        assert answer[0] == "unsupported"
        assert "libhsa-runtime64.so.1" in answer


def test_a_release_with_other_structures_is_refused(package):
    """HIP reordered the structures between 5.2 and 5.7, both with one soname."""
    if not (package.libraries / "libamdhip64.so.5").exists():
        pytest.skip("only wheels for ROCm 5 can meet the other layout")
    text = (package.folder / "monarch/_build_info.py").read_text("utf-8")
    other = "50221153" if "5.7" in text else HIP_5_7
    newer = package.with_environment(MONARCH_STANDIN_VERSION=other)
    assert run(
        newer,
        """
print(code(lambda: device.allocate(64, shareable=True)))
print(code(lambda: device.import_fd(0, 64)))
device.allocate(64).write(bytes(64))
print('plain memory works')
""",
    ) == ["unsupported", "unsupported", "plain", "memory", "works"]
