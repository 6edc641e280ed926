"""Devices."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from monarch._gpu.load import native
from monarch._gpu.memory import HostMemory, Memory
from monarch._gpu.stream import Stream


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU that this process sees. Sizes are in bytes."""

    ordinal: int
    name: str
    uuid: uuid.UUID
    pci_bus_id: str
    total_memory: int
    multiprocessors: int
    wave_size: int
    """Threads that run in step: 32 on NVIDIA; 64 or 32 on AMD."""
    compute_capability: tuple[int, int]
    max_threads_per_block: int
    max_shared_memory_per_block: int
    l2_cache_bytes: int

    def allocate(self, nbytes: int, *, shareable: bool = False) -> Memory:
        """Memory of this device; see `Memory.allocate`."""
        return Memory.allocate(self.ordinal, nbytes, shareable=shareable)

    def import_fd(self, descriptor: int, nbytes: int) -> Memory:
        """Memory of another process, mapped here; see `Memory.import_fd`."""
        return Memory.import_fd(self.ordinal, descriptor, nbytes)

    def host_memory(self, nbytes: int) -> HostMemory:
        """Page-locked host memory for asynchronous copies."""
        return HostMemory(self.ordinal, nbytes)

    def stream(self, priority: int = 0) -> Stream:
        """A new stream."""
        return Stream(self.ordinal, priority)

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes at this moment."""
        free, total = native().memory_info(self.ordinal)
        return int(free), int(total)

    def can_access(self, other: Device) -> bool:
        """Whether this device can read and write memory of the other directly."""
        return bool(native().can_access_peer(self.ordinal, other.ordinal))

    def synchronize(self) -> None:
        """Wait for all work that this process gave to the device."""
        native().synchronize_device(self.ordinal)


def device(ordinal: int) -> Device:
    """The device of this number.

    Raises:
        GpuError: code `invalid_argument` for a number that there is not.

    """
    info = native().device_info(ordinal)
    return Device(
        ordinal=info.ordinal,
        name=info.name,
        uuid=uuid.UUID(bytes=info.uuid),
        pci_bus_id=info.pci_bus_id,
        total_memory=info.total_memory,
        multiprocessors=info.multiprocessors,
        wave_size=info.wave_size,
        compute_capability=(info.compute_major, info.compute_minor),
        max_threads_per_block=info.max_threads_per_block,
        max_shared_memory_per_block=info.max_shared_memory_per_block,
        l2_cache_bytes=info.l2_cache_bytes,
    )


def devices() -> tuple[Device, ...]:
    """All devices that this process sees; none is an empty tuple.

    Raises:
        GpuError: this is monarch-cpu, or the driver's library is missing (`library_missing`).
        RuntimeLibraryError: the HIP runtime cannot be used.

    """
    return tuple(device(ordinal) for ordinal in range(native().device_count()))
