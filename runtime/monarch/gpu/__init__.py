"""GPUs of this process: devices, memory, streams, kernels and collectives.

Needs monarch-cuda or monarch-rocm; in monarch-cpu every use raises `GpuError`, which says so.
"""

from monarch._gpu.collectives import REDUCTIONS, Communicator, group
from monarch._gpu.collectives import library as collectives_library
from monarch._gpu.device import Device, device, devices
from monarch._gpu.kernels import DTYPES, cast, checksum, host_checksum, pack, unpack
from monarch._gpu.memory import HostMemory, Memory
from monarch._gpu.stream import Event, Stream
from monarch.errors import GpuError

__all__ = [
    "DTYPES",
    "REDUCTIONS",
    "Communicator",
    "Device",
    "Event",
    "GpuError",
    "HostMemory",
    "Memory",
    "Stream",
    "cast",
    "checksum",
    "collectives_library",
    "device",
    "devices",
    "group",
    "host_checksum",
    "pack",
    "unpack",
]
