"""Memory of real devices: copies, virtual memory, sharing between processes."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from monarch import gpu

SHARE = Path(__file__).resolve().parents[1] / "native/programs/share.py"


def noise(size):
    """Bytes without a pattern, the same each time."""
    return hashlib.shake_128(b"noise").digest(size)


def test_bytes_come_back_from_every_device():
    data = noise((1 << 20) + 13)
    for device in gpu.devices():
        with device.allocate(len(data)) as memory:
            memory.write(data)
            assert memory.read() == data


def test_attributes_make_sense(device):
    free, total = device.memory_info()
    assert 0 < free <= total
    assert device.wave_size in {32, 64}
    assert device.multiprocessors > 0
    assert device.max_threads_per_block >= 256


def test_a_stream_carries_page_locked_copies_and_events_measure_them(device, stream):
    data = noise(1 << 22)
    host = device.host_memory(len(data))
    host.view[:] = data
    with device.allocate(len(data)) as memory:
        start = stream.record(timing=True)
        memory.write(host.view, stream=stream)
        end = stream.record(timing=True)
        end.synchronize()
        assert end.milliseconds_since(start) > 0
        assert memory.read() == data
    stream.synchronize()
    host.release()


def shareable(device):
    try:
        return device.allocate(1 << 20, shareable=True)
    except gpu.GpuError as error:
        if error.code == "unsupported":
            pytest.skip(f"no virtual memory management here: {error}")
        raise


def test_an_import_sees_what_the_owner_writes(device):

    with shareable(device) as memory:
        descriptor = memory.export_fd()
        with device.import_fd(descriptor, memory.nbytes) as other:
            os.close(descriptor)
            memory.write(b"seen", offset=1000)
            assert other.read(4, offset=1000) == b"seen"


def test_processes_share_memory_and_it_outlives_its_owner(device):
    shareable(device).release()
    ends = socket.socketpair()
    processes = [
        subprocess.Popen(
            [sys.executable, str(SHARE), role, str(end.fileno())],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=[end.fileno()],
        )
        for role, end in zip(("owner", "peer"), ends, strict=True)
    ]
    for end in ends:
        end.close()
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert outputs[0][0].split() == ["owner", "sees", "answer"]
    assert outputs[1][0].splitlines()[-1] == "peer still sees question"


def test_a_dma_buffer_is_a_descriptor_or_says_why_not(device):

    with shareable(device) as memory:
        try:
            descriptor, offset = memory.dma_buffer()
        except gpu.GpuError as error:
            pytest.skip(f"no dma-buf here: {error}")
        assert str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith("/dmabuf")
        assert offset >= 0
        os.close(descriptor)


def test_device_memory_runs_out_with_a_code_of_its_own(device):
    with pytest.raises(gpu.GpuError) as raised:
        device.allocate(1 << 60)
    assert raised.value.code == "out_of_memory"
