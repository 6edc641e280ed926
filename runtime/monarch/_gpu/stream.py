"""Streams and events."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self

from monarch._gpu.load import native

if TYPE_CHECKING:
    from types import TracebackType


class Stream:
    """Work of one device in order, independent of other streams.

    The most urgent `priority` is the lowest number. Usable as a context manager; leaving it waits
    for the work and releases the stream.
    """

    def __init__(self, device: int, priority: int = 0) -> None:
        self._native: Any = native().Stream.create(device, priority)
        # Host buffers of queued copies, which must live until the stream got there.
        self._held: list[object] = []

    @property
    def device(self) -> int:
        return int(self._native.device)

    @property
    def handle(self) -> int:
        """The vendor's handle, for other libraries."""
        return int(self._native.handle)

    def synchronize(self) -> None:
        """Wait until all work given so far is done."""
        held = len(self._held)
        self._native.synchronize()
        del self._held[:held]

    @property
    def idle(self) -> bool:
        """Whether all work given so far is done."""
        return bool(self._native.query())

    def record(self, *, timing: bool = False) -> Event:
        """Mark this place in the stream; `timing` lets events be compared by time."""
        event = Event(self.device, timing=timing)
        event.record(self)
        return event

    def wait(self, event: Event) -> None:
        """Let work given from now on wait for `event`, which may be of another stream."""
        self._native.wait(event._native)  # noqa: SLF001 - one class in two files would be worse

    def release(self) -> None:
        """Give the stream back; work in it still runs. Idempotent."""
        self._native.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self.release)
            self.synchronize()

    def hold(self, buffer: object) -> None:
        """Keep `buffer` alive until the next `synchronize`."""
        self._held.append(buffer)


class Event:
    """A mark in a stream."""

    def __init__(self, device: int, *, timing: bool = False) -> None:
        self._native: Any = native().Event.create(device, timing)

    @property
    def device(self) -> int:
        return int(self._native.device)

    def record(self, stream: Stream) -> None:
        """Move the mark to the end of the stream's present work."""
        self._native.record(stream._native)  # noqa: SLF001

    @property
    def done(self) -> bool:
        return bool(self._native.query())

    def synchronize(self) -> None:
        """Wait for the mark."""
        self._native.synchronize()

    def milliseconds_since(self, start: Event) -> float:
        """Time from `start` to this mark; both made with `timing` and done."""
        return float(self._native.elapsed_since(start._native))

    def release(self) -> None:
        """Give the event back. Idempotent."""
        self._native.release()
