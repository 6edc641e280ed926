"""What processes print, brought to the program that drives them: `ProcMesh.logging_option`.

Without it, lines go to the standard output and error of the process that started theirs. With it
they are written to `sys.stdout` and `sys.stderr` of the one that asked, which in a notebook is the
page; at once, or for each window of time with those of different ranks that are alike put together.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock

from monarch import config
from monarch._actor.process import at_start, process
from monarch._proc import local
from monarch._proc.aggregate import Aggregator
from monarch._proc.relay import lost_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from monarch._actor.process import Process
    from monarch._proc.spec import ProcSpec

__all__ = ["check_option", "follow", "set_option"]

INFO = 20  # logging.INFO


class _View:
    """How the lines of one mesh are written here."""

    def __init__(self, window: float | None) -> None:
        self.window = window
        self.lines = Aggregator(_prefix)
        self.due: float | None = None


class _Seen:
    __slots__ = ("label", "rank", "view")

    def __init__(self, label: str, rank: int, view: _View) -> None:
        self.label = label
        self.rank = rank
        self.view = view


_lock = allocate_lock()
_seen: dict[int, _Seen] = {}  # by process, in the program that asked
_wanted_by: dict[int, int] = {}  # by process, in the one that started it
_ticking = False
_failed: set[int] = set()  # streams that have lost lines


def check_option(*, stream_to_client: bool, aggregate_window_sec: float | None) -> None:
    """Refuse what cannot be meant.

    Raises:
        ValueError: a window without streaming, or one that is not positive.

    """
    if aggregate_window_sec is None:
        return
    if not stream_to_client:
        raise ValueError(
            f"logging_option: aggregate_window_sec={aggregate_window_sec!r} needs "
            "stream_to_client=True: only lines that come here can be put together"
        )
    if not 0 < aggregate_window_sec < float("inf"):
        raise ValueError(
            f"logging_option: aggregate_window_sec={aggregate_window_sec!r} is no time in seconds"
        )


def set_option(
    procs: Sequence[tuple[int, int, str, int]],
    *,
    stream_to_client: bool = False,
    aggregate_window_sec: float | None = None,
    level: int = INFO,
) -> None:
    """Bring the lines of processes here, or leave them where they are, from now on.

    `procs` has for each process: its id, its rank, the name of its mesh, and the id of the process
    that started it. `level` is set in each for its root logger.

    Raises:
        ValueError: as `check_option`.

    """
    check_option(stream_to_client=stream_to_client, aggregate_window_sec=aggregate_window_sec)
    here = process()
    view = _View(aggregate_window_sec)
    by_starter: dict[int, list[int]] = {}
    with _lock:
        for proc, rank, name, starter in procs:
            by_starter.setdefault(starter, []).append(proc)
            if stream_to_client:
                _seen[proc] = _Seen(f"{name} {rank}", rank, view)
            else:
                _seen.pop(proc, None)
    for starter, ids in by_starter.items():
        if starter == here.id:
            _forward(ids, here.id if stream_to_client else None)
        else:
            here.tell(starter, "forward_logs", (ids, stream_to_client))
    for proc, *_ in procs:
        here.tell(proc, "log_level", level)


def follow(old: int, new: int, starter: int) -> None:
    """A process comes in the place of another: its lines go where that one's did."""
    here = process()
    with _lock:
        seen = _seen.pop(old, None)
        if seen is not None:
            _seen[new] = seen
        _wanted_by.pop(old, None)
    if seen is None:
        return
    if starter == here.id:
        _forward([new], here.id)
    else:
        here.tell(starter, "forward_logs", ([new], True))


def _forward(procs: Sequence[int], client: int | None) -> None:
    """In the process that started these: bring their lines to `client`, or to nobody."""
    with _lock:
        for proc in procs:
            if client is None:
                _wanted_by.pop(proc, None)
            else:
                _wanted_by[proc] = client
    local.spawner().forward(procs, on=client is not None)


def _printed(proc: int, stream: int, lines: bytes) -> None:
    """A process started here has printed lines that are wanted elsewhere, or here."""
    here = process()
    client = _wanted_by.get(proc, here.id)
    if client == here.id:
        _arrived(proc, stream, lines)
    else:
        here.tell(client, "log", (proc, stream, lines))


def _arrived(proc: int, stream: int, lines: bytes) -> None:
    seen = _seen.get(proc)
    if seen is None:
        return
    if seen.view.window is None:
        prefix = _prefix(seen.label)
        _write(stream, b"".join(prefix + line for line in lines.splitlines(keepends=True)))
        return
    with _lock:
        seen.view.lines.add(seen.rank, seen.label, stream, lines)
        if seen.view.due is None:
            _start_window(seen.view)


def _start_window(view: _View) -> None:
    """Write the view's lines when its window is over; the lock is held."""
    global _ticking  # noqa: PLW0603 - one thread for all
    import time  # noqa: PLC0415 - only with a window

    assert view.window is not None  # noqa: S101 - the caller's condition
    view.due = time.monotonic() + view.window
    if not _ticking:
        _ticking = True
        process().start_thread(_tick, "monarch-logs")


def _tick() -> None:
    """Write windows as they end; the thread lives as long as any is open."""
    global _ticking  # noqa: PLW0603 - as above
    import time  # noqa: PLC0415 - as above

    here = process()
    while True:
        with _lock:
            now = time.monotonic()
            open_views = {seen.view for seen in _seen.values() if seen.view.due is not None}
            ended = {view for view in open_views if view.due is not None and view.due <= now}
            texts = [text for view in ended for text in _close(view)]
            left = [view.due for view in open_views - ended if view.due is not None]
            if not left:
                _ticking = False
        for stream, text in texts:
            _write(stream, text)
        if not left or here.stopped:
            return
        time.sleep(min(max(min(left) - time.monotonic(), 0.0), 0.1))


def _close(view: _View) -> list[tuple[int, bytes]]:
    view.due = None
    return view.lines.flush()


def _flush() -> None:
    """Write what waits for the end of its window: there will be none."""
    with _lock:
        texts = [text for view in {seen.view for seen in _seen.values()} for text in _close(view)]
    for stream, text in texts:
        _write(stream, text)


def _write(stream: int, text: bytes) -> None:
    """Write to the program's own stream; one that is closed or full loses the lines."""
    target = sys.stdout if stream == 1 else sys.stderr
    if target is None:
        return
    try:
        target.write(text.decode("utf-8", "replace"))
        target.flush()
    except OSError as error:
        if stream not in _failed and not isinstance(error, BrokenPipeError):
            _failed.add(stream)
            if 3 - stream not in _failed:
                why = error.strerror or type(error).__name__
                _write(3 - stream, lost_lines(stream, why).encode())
    except ValueError:
        pass


def _prefix(label: str) -> bytes:
    return f"[{label}] ".encode() if config.value("prefix_with_rank") else b""


def _asked(_peer: int, body: tuple[list[int], bool]) -> None:
    procs, on = body
    _forward(procs, _peer if on else None)


def _spawned(specs: Sequence[ProcSpec]) -> None:
    """Processes are about to start: where the configuration says so, their lines come here."""
    if not config.value("enable_log_forwarding"):
        return
    view = _View(None)
    here = process()
    with _lock:
        for spec in specs:
            _wanted_by[spec.id] = spec.owner or here.id
            _seen[spec.id] = _Seen(spec.label, spec.rank, view)
    local.spawner().forward([spec.id for spec in specs], on=True)


def _ended(report: Any) -> None:
    if report.expected:
        _wanted_by.pop(report.proc, None)


def _listen(here: Process) -> None:
    here.on("log", lambda _peer, body: _arrived(*body))
    here.on("forward_logs", _asked)
    here.at_exit(_flush)
    local.listen(on_log=_printed, on_exit=_ended, on_spawn=_spawned)


at_start(_listen)
