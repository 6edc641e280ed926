"""An extent as bytes, to travel with each call."""

from __future__ import annotations

from monarch._shape.extent import Extent

__all__ = ["decode_extent", "encode_extent"]

_KEPT = 1024
_decoded: dict[bytes, Extent] = {}


def encode_extent(extent: Extent) -> bytes:
    r"""Labels and sizes, each ended by NUL: `b"hosts\x002\x00gpus\x004\x00"`; no bytes for none."""
    try:
        return extent._wire  # noqa: SLF001 - made once and kept there
    except AttributeError:
        parts = [f"{label}\0{size}\0" for label, size in extent.items()]
        extent._wire = data = "".join(parts).encode()  # noqa: SLF001
        return data


def decode_extent(data: bytes) -> Extent:
    """What `encode_extent` made bytes of. The last thousand different ones are kept.

    Raises:
        ValueError: the bytes are no extent.

    """
    extent = _decoded.get(data)
    if extent is None:
        parts = data.decode().split("\0")
        if parts.pop() or len(parts) % 2:
            raise ValueError(f"no extent in {data!r}")
        extent = Extent(parts[::2], [int(size) for size in parts[1::2]])
        if len(_decoded) >= _KEPT:
            _decoded.clear()
        _decoded[bytes(data)] = extent
    return extent
