"""Device memory: plain, or shareable between processes by descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from monarch._gpu.load import native
from monarch.errors import GpuError

if TYPE_CHECKING:
    from types import TracebackType

    from monarch._gpu.stream import Stream


class Memory:
    """`nbytes` bytes of memory on a device, filled with nothing in particular.

    Made by `Device.allocate` or `Memory.import_fd`. Usable as a context manager, which releases it.
    Where a `stream` is given, the operation is queued and returns at once; a host buffer of a
    queued copy is kept alive by the stream until its next `synchronize`.
    """

    def __init__(self, owner: Any, physical: Any, nbytes: int) -> None:
        self._owner = owner
        self._physical = physical
        self._nbytes = nbytes

    @classmethod
    def allocate(cls, device: int, nbytes: int, *, shareable: bool = False) -> Memory:
        """`shareable` memory is mapped in whole pages of the device, and can be exported.

        Raises:
            GpuError: code `out_of_memory`; `invalid_argument` for no bytes; `unsupported` where
                the device has no virtual memory management and `shareable` is asked.

        """
        module = native()
        if not shareable:
            return cls(module.Allocation.create(device, nbytes), None, nbytes)
        if nbytes < 1:
            raise GpuError("0 bytes asked for, wanted at least 1", "invalid_argument", "allocating")
        physical = module.PhysicalMemory.create(device, _whole_pages(device, nbytes))
        return cls(_mapped(physical), physical, nbytes)

    @classmethod
    def import_fd(cls, device: int, descriptor: int, nbytes: int) -> Memory:
        """Map memory that `export_fd` of any process gave away; `nbytes` as it was allocated.

        The descriptor stays the caller's and may be closed afterwards.
        """
        size = _whole_pages(device, nbytes)
        physical = native().PhysicalMemory.import_descriptor(device, descriptor, size)
        return cls(_mapped(physical), physical, nbytes)

    @property
    def device(self) -> int:
        return int(self._owner.device)

    @property
    def address(self) -> int:
        """The device address; 0 after `release`."""
        return int(self._owner.address)

    @property
    def nbytes(self) -> int:
        return self._nbytes

    def export_fd(self) -> int:
        """A descriptor to send to another process; the caller closes it.

        Raises:
            GpuError: the memory was not allocated `shareable`.

        """
        if self._physical is None:
            raise GpuError(
                "plain memory has no descriptor; allocate it with shareable=True",
                "unsupported",
                "exporting memory",
            )
        return int(self._physical.export_descriptor())

    def dma_buffer(self) -> tuple[int, int]:
        """A dma-buf descriptor for network and storage drivers, and where in it the memory starts.

        The caller closes the descriptor. Raises GpuError with code `unsupported` where runtime,
        device or kernel do not offer it.
        """
        page = 4096
        whole = -(-self._nbytes // page) * page
        descriptor, offset = native().export_dma_buffer(self.device, self._live(), whole)
        return int(descriptor), int(offset)

    def write(self, source: Any, *, offset: int = 0, stream: Stream | None = None) -> None:
        """Copy a contiguous host buffer to `offset` bytes into this memory."""
        view = memoryview(source)
        self._check(offset, view.nbytes)
        queue = stream._native if stream else None  # noqa: SLF001
        if stream:
            stream.hold(view)
        native().copy_to_device(self.device, self._live() + offset, view, queue)

    def read_into(self, target: Any, *, offset: int = 0, stream: Stream | None = None) -> None:
        """Fill a contiguous, writable host buffer from `offset` bytes into this memory."""
        view = memoryview(target)
        self._check(offset, view.nbytes)
        queue = stream._native if stream else None  # noqa: SLF001
        if stream:
            stream.hold(view)
        native().copy_to_host(self.device, view, self._live() + offset, queue)

    def read(self, nbytes: int | None = None, *, offset: int = 0) -> bytes:
        """The bytes from `offset`, all that are left unless `nbytes` says how many."""
        target = bytearray(self._nbytes - offset if nbytes is None else nbytes)
        self.read_into(target, offset=offset)
        return bytes(target)

    def copy_from(
        self,
        source: Memory,
        nbytes: int | None = None,
        *,
        offset: int = 0,
        source_offset: int = 0,
        stream: Stream | None = None,
    ) -> None:
        """Copy from other device memory: all of it from `source_offset` unless `nbytes` says."""
        count = source.nbytes - source_offset if nbytes is None else nbytes
        self._check(offset, count)
        source._check(source_offset, count)
        native().copy_on_device(
            self.device,
            self._live() + offset,
            source._live() + source_offset,
            count,
            stream._native if stream else None,  # noqa: SLF001
        )

    def fill(self, value: int, *, stream: Stream | None = None) -> None:
        """Set every byte to `value`, 0 to 255."""
        queue = stream._native if stream else None  # noqa: SLF001
        native().fill(self.device, self._live(), value, self._nbytes, queue)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as a one-dimensional array of bytes (version 3)."""
        return {
            "shape": (self._nbytes,),
            "typestr": "|u1",
            "data": (self._live(), False),
            "version": 3,
        }

    def release(self) -> None:
        """Give the memory back. Idempotent; the address is 0 afterwards."""
        self._owner.release()
        if self._physical is not None:
            self._physical.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<Memory {self._nbytes} bytes at {self.address:#x} of device {self.device}>"

    def _live(self) -> int:
        address = self.address
        if address == 0:
            raise GpuError("the memory was released", "invalid_argument")
        return address

    def _check(self, offset: int, nbytes: int) -> None:
        if offset < 0 or nbytes < 0 or offset + nbytes > self._nbytes:
            raise GpuError(
                f"{nbytes} bytes at offset {offset} do not lie in memory of {self._nbytes} bytes",
                "invalid_argument",
            )


class HostMemory:
    """Page-locked host memory: copies from and to it on a stream are truly asynchronous.

    `view` is its bytes; it must not be used after `release`.
    """

    def __init__(self, device: int, nbytes: int) -> None:
        import ctypes  # noqa: PLC0415 - only users of page-locked memory pay for it

        self._native: Any = native().HostAllocation.create(device, nbytes)
        kind = ctypes.c_ubyte * nbytes
        self.view = memoryview(kind.from_address(self._native.address)).cast("B")

    @property
    def nbytes(self) -> int:
        return int(self._native.size)

    def release(self) -> None:
        """Give the memory back. Idempotent."""
        self.view.release()
        self._native.release()


def _whole_pages(device: int, nbytes: int) -> int:
    page = int(native().virtual_memory_granularity(device))
    return -(-nbytes // page) * page


def _mapped(physical: Any) -> Any:
    """A range of addresses with all of `physical` mapped, open to its device."""
    space = native().AddressRange.reserve(physical.device, physical.size)
    space.map(0, physical)
    space.set_access(0, physical.size, physical.device)
    return space
