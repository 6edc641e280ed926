"""Operations of our own kernels: strided pack and unpack, cast, checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monarch._gpu.load import native
from monarch._gpu.memory import Memory
from monarch._gpu.stream import Stream
from monarch.errors import GpuError

if TYPE_CHECKING:
    from collections.abc import Sequence

DTYPES = ("int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def pack(
    destination: Memory,
    source: Memory,
    shape: Sequence[int],
    strides: Sequence[int],
    itemsize: int,
    *,
    offset: int = 0,
    stream: Stream,
) -> None:
    """Gather elements of `source`, `strides` bytes apart, into contiguous `destination`.

    `offset` is where the first element lies, in bytes; `itemsize` is 1, 2, 4, 8 or 16.
    """
    contiguous = _span(source, shape, strides, itemsize, offset)
    _fits(destination, contiguous)
    native().pack(
        destination.address,
        source.address + offset,
        list(shape),
        list(strides),
        itemsize,
        stream._native,  # noqa: SLF001
    )


def unpack(
    destination: Memory,
    source: Memory,
    shape: Sequence[int],
    strides: Sequence[int],
    itemsize: int,
    *,
    offset: int = 0,
    stream: Stream,
) -> None:
    """Scatter contiguous `source` to elements of `destination`: the inverse of `pack`.

    Elements of `destination` must not overlap.
    """
    contiguous = _span(destination, shape, strides, itemsize, offset)
    _fits(source, contiguous)
    native().unpack(
        destination.address + offset,
        source.address,
        list(shape),
        list(strides),
        itemsize,
        stream._native,  # noqa: SLF001
    )


def cast(
    destination: Memory,
    destination_dtype: str,
    source: Memory,
    source_dtype: str,
    count: int,
    *,
    stream: Stream,
) -> None:
    """Convert `count` elements. The memories must not overlap.

    Integers wrap; a real number becomes an integer by truncation, saturates out of range, and NaN
    becomes 0; a narrower real is rounded once, to nearest with ties to even.
    """
    to, of = dtype(destination_dtype), dtype(source_dtype)
    _fits(destination, count * to.itemsize)
    _fits(source, count * of.itemsize)
    native().cast(destination.address, to, source.address, of, count, stream._native)  # noqa: SLF001


def checksum(memory: Memory, *, stream: Stream | None = None) -> int:
    """A 64-bit checksum of the bytes, equal to `host_checksum` of the same bytes; waits for it."""
    own = stream or Stream(memory.device)
    with Memory.allocate(memory.device, 8) as result:
        native().checksum(result.address, memory.address, memory.nbytes, own._native)  # noqa: SLF001
        own.synchronize()
        value = int.from_bytes(result.read(), "little")
    if stream is None:
        own.release()
    return value


def host_checksum(data: Any) -> int:
    """The checksum of a contiguous host buffer."""
    return int(native().host_checksum(memoryview(data)))


def dtype(name: str) -> Any:
    """The native element type of this name, one of `DTYPES`."""
    if name not in DTYPES:
        raise GpuError(
            f"element type {name!r}, wanted one of {', '.join(DTYPES)}", "invalid_argument"
        )
    return getattr(native().DType, name)


def _span(
    memory: Memory, shape: Sequence[int], strides: Sequence[int], itemsize: int, offset: int
) -> int:
    """The size of the elements put together; refuses elements outside the memory."""
    if len(shape) != len(strides) or any(extent < 0 for extent in shape):
        raise GpuError(
            f"shape {tuple(shape)} and strides {tuple(strides)}: wanted as many of both, and no "
            "negative extent",
            "invalid_argument",
        )
    count = 1
    low = high = offset
    for extent, stride in zip(shape, strides, strict=True):
        count *= extent
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    if count and (low < 0 or high + itemsize > memory.nbytes):
        raise GpuError(
            f"elements at bytes {low} to {high + itemsize} do not lie in memory of "
            f"{memory.nbytes} bytes",
            "invalid_argument",
        )
    return count * itemsize


def _fits(memory: Memory, nbytes: int) -> None:
    if nbytes < 0 or nbytes > memory.nbytes:
        raise GpuError(
            f"{nbytes} bytes do not fit memory of {memory.nbytes} bytes", "invalid_argument"
        )
