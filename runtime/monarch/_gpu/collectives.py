"""Collective operations between GPUs, by the vendor's library, opened at run time."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from monarch._gpu.kernels import dtype as _dtype
from monarch._gpu.load import native
from monarch.errors import GpuError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from monarch._gpu.memory import Memory
    from monarch._gpu.stream import Stream

REDUCTIONS = ("sum", "product", "maximum", "minimum", "average")

# Where Python packages put the library: package, then the file below it.
_PACKAGED = {
    "cuda": (("nvidia.nccl", "lib/libnccl.so.2"),),
    "rocm": (
        ("torch", "lib/librccl.so"),
        ("torch", "lib/librccl.so.1"),
        ("_rocm_sdk_libraries", "lib/librccl.so.1"),
    ),
}


@functools.cache
def library() -> tuple[str, int]:
    """Path and version of the collectives library, opened on first use.

    Raises:
        GpuError: code `library_missing`, with every file that was tried.

    """
    module = native()
    path, version = module.open_collectives([str(path) for path in _candidates(module.platform)])
    return str(path), int(version)


def _candidates(platform: str) -> list[Path]:
    found = [
        folder / file
        for package, file in _PACKAGED[platform]
        for folder in _package_folders(package)
    ]
    if platform == "rocm":
        homes = [os.environ.get("ROCM_PATH", ""), "/opt/rocm"]
        found += [Path(home) / "lib/librccl.so.1" for home in homes if home]
    return [path for path in found if path.is_file()]


def _package_folders(name: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []


@contextlib.contextmanager
def group() -> Iterator[None]:
    """Collect the operations of this thread inside the block and start them together.

    Needed wherever two ranks send to each other.
    """
    library()
    native().group_start()
    try:
        yield
    finally:
        native().group_end()


class Communicator:
    """One rank of a group of GPUs.

    Operations queue on the given stream and return. `count` is in elements of `dtype` (see
    `monarch.gpu.DTYPES`), and is as many as the memory holds unless given. Usable as a context
    manager, which releases it.
    """

    def __init__(self, made: Any) -> None:
        self._native = made

    @staticmethod
    def unique_id() -> bytes:
        """An identity for a new communicator: made by one rank, given to all others."""
        library()
        return bytes(native().make_unique_id())

    @classmethod
    def create(cls, device: int, unique_id: bytes, rank: int, size: int) -> Communicator:
        """Join as `rank` of `size`; returns when all ranks have."""
        library()
        return cls(native().Communicator.create(device, unique_id, rank, size))

    @property
    def rank(self) -> int:
        return int(self._native.rank)

    @property
    def size(self) -> int:
        return int(self._native.size)

    @property
    def device(self) -> int:
        return int(self._native.device)

    def all_reduce(
        self,
        send: Memory,
        receive: Memory,
        dtype: str,
        reduction: str = "sum",
        *,
        count: int | None = None,
        stream: Stream,
    ) -> None:
        """Reduce over all ranks, the result on each; `receive` may be `send`."""
        kind = _dtype(dtype)
        number = _count(kind, count, (send, 1), (receive, 1))
        self._native.all_reduce(
            send.address, receive.address, number, kind, _reduction(reduction), _queue(stream)
        )

    def all_gather(
        self, send: Memory, receive: Memory, dtype: str, *, count: int | None = None, stream: Stream
    ) -> None:
        """Put every rank's `send` one after the other into each `receive`."""
        kind = _dtype(dtype)
        number = _count(kind, count, (send, 1), (receive, self.size))
        self._native.all_gather(send.address, receive.address, number, kind, _queue(stream))

    def reduce_scatter(
        self,
        send: Memory,
        receive: Memory,
        dtype: str,
        reduction: str = "sum",
        *,
        count: int | None = None,
        stream: Stream,
    ) -> None:
        """Reduce over all ranks and give the n-th part (`count` elements) to rank n."""
        kind = _dtype(dtype)
        number = _count(kind, count, (receive, 1), (send, self.size))
        self._native.reduce_scatter(
            send.address, receive.address, number, kind, _reduction(reduction), _queue(stream)
        )

    def broadcast(
        self, memory: Memory, dtype: str, root: int, *, count: int | None = None, stream: Stream
    ) -> None:
        """Copy the root's memory to that of every rank."""
        kind = _dtype(dtype)
        number = _count(kind, count, (memory, 1))
        place = self._peer(root)
        self._native.broadcast(memory.address, memory.address, number, kind, place, _queue(stream))

    def reduce(
        self,
        send: Memory,
        receive: Memory,
        dtype: str,
        reduction: str = "sum",
        *,
        root: int,
        count: int | None = None,
        stream: Stream,
    ) -> None:
        """Reduce over all ranks, the result on the root alone."""
        kind = _dtype(dtype)
        number = _count(kind, count, (send, 1), (receive, 1))
        self._native.reduce(
            send.address,
            receive.address,
            number,
            kind,
            _reduction(reduction),
            self._peer(root),
            _queue(stream),
        )

    def send(
        self, memory: Memory, dtype: str, peer: int, *, count: int | None = None, stream: Stream
    ) -> None:
        """Send to a rank that calls `receive` with the same count."""
        kind = _dtype(dtype)
        number = _count(kind, count, (memory, 1))
        self._native.send(memory.address, number, kind, self._peer(peer), _queue(stream))

    def receive(
        self, memory: Memory, dtype: str, peer: int, *, count: int | None = None, stream: Stream
    ) -> None:
        """Receive from a rank that calls `send` with the same count."""
        kind = _dtype(dtype)
        number = _count(kind, count, (memory, 1))
        self._native.receive(memory.address, number, kind, self._peer(peer), _queue(stream))

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """A communicator of the ranks that give the same `color`, in order of `key`.

        Every rank has to call it; None takes no part and gets None.
        """
        made = self._native.split(-1 if color is None else color, key)
        return None if made is None else Communicator(made)

    def check(self) -> None:
        """Raise what broke the communicator, if anything did (`peer_failed` for a lost rank)."""
        self._native.async_error()

    def abort(self) -> None:
        """End outstanding operations at once and release; the way out when a rank is lost."""
        self._native.abort()

    def release(self) -> None:
        """Wait for outstanding operations and give the communicator back. Idempotent."""
        self._native.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.release()
        else:
            self.abort()

    def _peer(self, rank: int) -> int:
        if not 0 <= rank < self.size:
            raise GpuError(
                f"rank {rank}, wanted 0 to {self.size - 1}", "invalid_argument", "collectives"
            )
        return rank


def _reduction(name: str) -> Any:
    if name not in REDUCTIONS:
        raise GpuError(
            f"reduction {name!r}, wanted one of {', '.join(REDUCTIONS)}", "invalid_argument"
        )
    return getattr(native().Reduction, name)


def _queue(stream: Stream) -> Any:
    return stream._native  # noqa: SLF001


def _count(kind: Any, count: int | None, *memories: tuple[Memory, int]) -> int:
    """The element count, checked against memories that hold so many times as much."""
    fits = min(memory.nbytes // (kind.itemsize * parts) for memory, parts in memories)
    number = fits if count is None else count
    if not 0 <= number <= fits:
        raise GpuError(
            f"{number} elements of {kind.itemsize} bytes do not fit; there is room for {fits}",
            "invalid_argument",
            "collectives",
        )
    return number
