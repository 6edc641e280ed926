"""Our kernels against CPU references written apart from them."""

from __future__ import annotations

import hashlib
import itertools
import math
import struct

import pytest

from monarch import gpu
from monarch._gpu.load import native

FORMATS = {"int8": "b", "uint8": "B", "int32": "i", "int64": "q"}
FORMATS |= {"float16": "e", "float32": "f", "float64": "d"}
SIZES = (0, 1, 7, 8, 255, 256, 257, 4096, 1_000_003)


def noise(size):
    """Bytes without a pattern, the same each time."""
    return hashlib.shake_128(b"noise").digest(size)


def fill(device, data):
    memory = device.allocate(max(len(data), 1))
    memory.write(data)
    return memory


def decode(dtype, data):
    if dtype == "bfloat16":
        data = b"".join(b"\0\0" + data[at : at + 2] for at in range(0, len(data), 2))
        dtype = "float32"
    return [value for (value,) in struct.iter_unpack(f"<{FORMATS[dtype]}", data)]


def encode(dtype, values):
    if dtype == "bfloat16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)  # exact ones alone
    return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)


@pytest.mark.parametrize("size", SIZES[1:])
def test_checksum_is_that_of_the_same_bytes_on_the_host(device, stream, size):
    data = noise(size)
    with fill(device, data) as memory:
        expected = gpu.host_checksum(data)
        assert gpu.checksum(memory, stream=stream) == expected
        assert gpu.checksum(memory) == expected


def test_checksum_of_an_unaligned_address(device, stream):
    data = noise(1001)
    with fill(device, b"x" + data) as memory, device.allocate(8) as result:
        native().checksum(result.address, memory.address + 1, len(data), stream._native)
        stream.synchronize()
        assert int.from_bytes(result.read(), "little") == gpu.host_checksum(data)


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    ("shape", "order"),
    [((5, 7, 3), (2, 0, 1)), ((64, 64), (1, 0)), ((33,), (0,)), ((2, 3, 4, 5, 6), (4, 2, 0, 1, 3))],
)
def test_pack_gathers_a_transposed_view_and_unpack_puts_it_back(
    device, stream, itemsize, shape, order
):
    dense = [itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    extents, strides = [shape[axis] for axis in order], [dense[axis] for axis in order]
    data = noise(itemsize * math.prod(shape))
    offsets = [
        sum(at * stride for at, stride in zip(index, strides, strict=True))
        for index in itertools.product(*(range(extent) for extent in extents))
    ]
    expected = b"".join(data[offset : offset + itemsize] for offset in offsets)
    with fill(device, data) as source, device.allocate(len(data)) as packed:
        gpu.pack(packed, source, extents, strides, itemsize, stream=stream)
        stream.synchronize()
        assert packed.read() == expected
        source.fill(0, stream=stream)
        gpu.unpack(source, packed, extents, strides, itemsize, stream=stream)
        stream.synchronize()
        assert source.read() == data


def test_pack_takes_negative_and_repeated_strides(device, stream):
    data = bytes(range(64))
    with fill(device, data) as source, device.allocate(64) as packed:
        gpu.pack(packed, source, [64], [-1], 1, offset=63, stream=stream)
        stream.synchronize()
        assert packed.read() == data[::-1]
        gpu.pack(packed, source, [16, 4], [0, 1], 1, offset=8, stream=stream)
        stream.synchronize()
        assert packed.read() == data[8:12] * 16


@pytest.mark.parametrize("source_dtype", [*FORMATS, "bfloat16"])
@pytest.mark.parametrize("target_dtype", [*FORMATS, "bfloat16"])
def test_cast_of_small_integers_is_exact_between_all_types(
    device, stream, source_dtype, target_dtype
):
    values = list(range(128)) * 9
    size = {"bfloat16": 2}.get(target_dtype) or struct.calcsize(FORMATS.get(target_dtype, "e"))
    room = size * len(values)
    with fill(device, encode(source_dtype, values)) as source, device.allocate(room) as target:
        gpu.cast(target, target_dtype, source, source_dtype, len(values), stream=stream)
        stream.synchronize()
        assert decode(target_dtype, target.read()) == values


def test_every_half_precision_pattern_is_cast_like_the_cpu_does(device, stream):
    patterns = [bits for bits in range(1 << 16) if bits & 0x7C00 != 0x7C00]
    data = struct.pack(f"<{len(patterns)}H", *patterns)
    with fill(device, data) as halves, device.allocate(4 * len(patterns)) as floats:
        gpu.cast(floats, "float32", halves, "float16", len(patterns), stream=stream)
        stream.synchronize()
        values = decode("float32", floats.read())
        assert values == decode("float16", data)
        # Between two neighbours the nearest is taken, ties to even: what the CPU's struct does.
        nudged = [value * (1 + 2.0**-12) for value in values]
        floats.write(struct.pack(f"<{len(nudged)}f", *nudged))
        gpu.cast(halves, "float16", floats, "float32", len(nudged), stream=stream)
        stream.synchronize()
        single = struct.unpack(f"<{len(nudged)}f", struct.pack(f"<{len(nudged)}f", *nudged))
        fitting = [value for value in single if abs(value) < 65520]
        got = decode("float16", halves.read())
        kept = [one for one, value in zip(got, single, strict=True) if abs(value) < 65520]
        assert kept == decode("float16", struct.pack(f"<{len(fitting)}e", *fitting))


def test_cast_saturates_and_zeroes_nan(device, stream):
    values = [3e9, -3e9, math.nan, math.inf, -math.inf, -2.9, 2.9]
    with fill(device, struct.pack("<7f", *values)) as source, device.allocate(28) as target:
        gpu.cast(target, "int32", source, "float32", 7, stream=stream)
        stream.synchronize()
        most, least = (1 << 31) - 1, -(1 << 31)
        assert decode("int32", target.read()) == [most, least, 0, most, least, -2, 2]
