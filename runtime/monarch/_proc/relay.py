"""What processes print, on its way to the parent's own standard output and error.

Each process writes into two pipes. Lines are passed on whole, each once, behind `[name rank]`. A
reader that is slow holds the writers up as any pipe does; one that is gone, or a full disk, loses
the lines and stops nobody. Of a disk that is full one line on the other stream says so, once.
"""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_LINE = 65536  # bytes; a longer one is cut into several
_ATOMIC = 4096  # what a pipe that polls as writable takes without blocking
_HIGH = 1 << 20  # bytes waiting for a reader, above which no more is read


class _Stream:
    __slots__ = ("fd", "prefix", "proc", "rest", "sink")

    def __init__(self, proc: int, fd: int, sink: int, prefix: bytes) -> None:
        self.proc = proc
        self.fd = fd
        self.sink = sink
        self.prefix = prefix
        self.rest = b""

    def lines(self, data: bytes, *, end: bool) -> list[bytes]:
        """Whole lines with their ends; what is left is kept, at the end it becomes a line."""
        parts = (self.rest + data).splitlines(keepends=True)
        self.rest = b""
        if parts and not parts[-1].endswith((b"\n", b"\r")):
            if end:
                parts[-1] += b"\n"
            elif len(parts[-1]) <= LONGEST_LINE:
                self.rest = parts.pop()
        return parts


class _Sink:
    __slots__ = ("broken", "failed", "fd", "pending")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.pending = bytearray()
        self.broken = False
        self.failed = False  # lines were lost to an error once

    def flush(self) -> str:
        """Write what can be written without blocking; why lines are lost, the first time."""
        while self.pending and not self.broken:
            if not _writable(self.fd, 0):
                return ""
            try:
                written = os.write(self.fd, self.pending[:_ATOMIC])
            except BlockingIOError:
                return ""
            except BrokenPipeError:
                self.broken = True
            except OSError as error:  # a full disk, say: this is lost, later there may be room
                self.pending.clear()
                if not self.failed:
                    self.failed = True
                    return error.strerror or type(error).__name__
            else:
                del self.pending[:written]
        if self.broken:
            self.pending.clear()
        return ""


def _writable(fd: int, milliseconds: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(milliseconds))


class Relay:
    """The pipes of all processes of a zygote.

    `forward` gets the lines of those processes that `forwarded` holds, as (process, 1 or 2, bytes),
    in place of the parent's output.
    """

    def __init__(self, forward: Callable[[int, int, bytes], None]) -> None:
        self.forwarded: set[int] = set()
        self._forward = forward
        self._streams: dict[int, _Stream] = {}
        self._sinks = {1: _Sink(1), 2: _Sink(2)}

    def pipes(self, proc: int, label: str) -> tuple[int, int]:
        """Make a process's pipes: the ends for its standard output and error.

        Raises:
            OSError: no descriptor is left.

        """
        prefix = _prefix(label)
        made = []
        for sink in (1, 2):
            reading, writing = os.pipe()
            os.set_blocking(reading, False)
            self._streams[reading] = _Stream(proc, reading, sink, prefix)
            made.append(writing)
        return made[0], made[1]

    def rename(self, proc: int, label: str) -> None:
        """Put another label before the lines of a process from now on."""
        for stream in self._streams.values():
            if stream.proc == proc:
                stream.prefix = _prefix(label)

    def processes(self) -> set[int]:
        """Those whose pipes are open."""
        return {stream.proc for stream in self._streams.values()}

    def descriptors(self) -> list[int]:
        """The ends held here, which no child may keep."""
        return list(self._streams)

    def readable(self) -> list[int]:
        """Descriptors to wait for; fewer while a reader of ours is slow."""
        full = {key for key, sink in self._sinks.items() if len(sink.pending) > _HIGH}
        if not full:
            return list(self._streams)
        return [fd for fd, stream in self._streams.items() if stream.sink not in full]

    def writable(self) -> list[int]:
        """Standard descriptors that something waits to be written to."""
        return [sink.fd for sink in self._sinks.values() if sink.pending]

    def ready(self, fd: int) -> None:
        """Go on with a descriptor of `readable` or `writable`."""
        if fd in self._sinks:
            self._flush(fd)
            return
        stream = self._streams.get(fd)
        if stream is not None and not self._read(stream):
            self._close(stream)

    def finish(self, proc: int) -> None:
        """Pass on what an ended process has left in its pipes, and close them."""
        for stream in [each for each in self._streams.values() if each.proc == proc]:
            while True:
                try:
                    data = os.read(stream.fd, LONGEST_LINE)
                except OSError:
                    break
                if not data:
                    break
                self._pass_on(stream, stream.lines(data, end=False))
            self._close(stream)
        self.forwarded.discard(proc)

    def note(self, text: str) -> None:
        """A line of our own on standard error."""
        self._sinks[2].pending += text.encode() + b"\n"
        self._flush(2)

    def drain(self, seconds: float) -> None:
        """Write what is pending; a reader that takes nothing for this long loses the rest."""
        for sink in self._sinks.values():
            while sink.pending and not sink.broken and _writable(sink.fd, int(seconds * 1000)):
                self._flush(sink.fd)

    def _read(self, stream: _Stream) -> bool:
        try:
            data = os.read(stream.fd, LONGEST_LINE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._pass_on(stream, stream.lines(data, end=not data))
        return bool(data)

    def _close(self, stream: _Stream) -> None:
        self._pass_on(stream, stream.lines(b"", end=True))
        os.close(stream.fd)
        del self._streams[stream.fd]

    def _pass_on(self, stream: _Stream, lines: list[bytes]) -> None:
        if not lines:
            return
        if stream.proc in self.forwarded:
            self._forward(stream.proc, stream.sink, b"".join(lines))
            return
        sink = self._sinks[stream.sink]
        for line in lines:
            sink.pending += stream.prefix + line
        self._flush(sink.fd)

    def _flush(self, key: int) -> None:
        why = self._sinks[key].flush()
        other = 3 - key
        if why and not self._sinks[other].failed:
            self._sinks[other].pending += lost_lines(key, why).encode()
            self._flush(other)


def lost_lines(stream: int, why: str) -> str:
    """What is said, once, of output that is lost."""
    name = {1: "output", 2: "error"}[stream]
    return f"monarch: lines of processes are lost: standard {name} takes none ({why})\n"


def _prefix(label: str) -> bytes:
    return f"[{label}] ".encode() if label else b""
