"""Tensors of torch in messages: their memory out of band, as that of arrays.

torch's own way copies a tensor's memory into the stream of pickle, and out of it again. Here what
lies in the memory of the processor, and is a tensor and nothing more, goes as a buffer; tensors of
one message that share memory share it afterwards. Anything else is left to torch. It is not
imported before the program has done so, or a tensor has come.
"""

from __future__ import annotations

import io
import sys
from _pickle import PickleBuffer, Pickler
from copyreg import dispatch_table

from monarch._core import memory_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Reducer", "dumps", "tensor_type"]

_LARGE = 64 << 10  # from here on a buffer costs less than a copy in the stream


def tensor_type() -> type | None:
    """The class of tensors, where there is torch and no way of the program to pickle them."""
    cls = getattr(sys.modules.get("torch"), "Tensor", None)
    return None if cls in dispatch_table else cls


def dumps(value: object, take: Callable[[Any], object]) -> bytes:
    """As `pickle.dumps` with `take` for buffers, in a program that has torch."""
    whole = io.BytesIO()
    pickler = Pickler(whole, 5, buffer_callback=take)
    cls = tensor_type()
    if cls is not None:
        pickler.dispatch_table = {**dispatch_table, cls: Reducer()}
    pickler.dump(value)
    return whole.getvalue()


class Reducer:
    """What pickle does with the tensors of one message."""

    def __init__(self) -> None:
        self._met: dict[tuple[int, int], _Memory] = {}

    def __call__(self, tensor: Any) -> Any:
        """The parts of a tensor, for pickle."""
        try:
            memory = self._memory(tensor) if _is_plain(tensor) else None
        except RuntimeError:  # there is none, or none that can be had
            memory = None
        if memory is None:
            return tensor.__reduce_ex__(5)
        place = (tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
        return _tensor, (memory, tensor.dtype, *place)

    def _memory(self, tensor: Any) -> _Memory | None:
        storage = tensor.untyped_storage()
        key = (storage.data_ptr(), storage.nbytes())
        if not all(key):
            return None
        return self._met.setdefault(key, _Memory(storage, *key))


def _is_plain(tensor: Any) -> bool:
    """Whether its memory, type and shape are all there is to a tensor."""
    return (
        tensor.is_cpu
        and str(tensor.layout) == "torch.strided"
        and not (tensor.requires_grad or tensor.is_quantized or tensor.is_nested)
        and not (tensor.is_conj() or tensor.is_neg() or tensor.__dict__)
    )


class _Memory:
    """The memory of tensors: pickle meets it once for all that share it."""

    __slots__ = ("_address", "_size", "_storage")

    def __init__(self, storage: Any, address: int, size: int) -> None:
        self._storage, self._address, self._size = storage, address, size

    def __reduce_ex__(self, _protocol: object) -> tuple[Any, ...]:
        memory = memory_at(self._address, self._size, self._storage)
        return _storage, (PickleBuffer(memory) if self._size >= _LARGE else bytes(memory),)


def _storage(memory: Any) -> Any:
    import torch  # noqa: PLC0415 - a tensor has come

    if memoryview(memory).readonly:
        memory = bytearray(memory)
    return torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()


def _tensor(
    storage: Any, dtype: Any, offset: int, size: tuple[int, ...], stride: tuple[int, ...]
) -> Any:
    import torch  # noqa: PLC0415 - as above

    return torch.empty(0, dtype=dtype, device="cpu").set_(storage, offset, size, stride)
