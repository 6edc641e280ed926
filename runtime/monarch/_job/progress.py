"""Progress of a wait, on stderr: a line that changes on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, TextIO

_QUIET = 2.0  # seconds of a wait that is not worth a line
_EVERY = 60.0  # seconds between two lines where there is no terminal


class Waiting:
    """Tells what is waited for, and why, as long as the `with` block lasts.

    Nothing is written where the wait is short. On a terminal with rich there is a spinner; what is
    written elsewhere is a line at first, one a minute, and one at the end.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._started = self._written = time.monotonic()
        self._text = ""
        self._said = False
        self._spinner: Any = None

    def __enter__(self) -> Self:
        return self

    def say(self, text: str) -> None:
        """What is waited for now; one line."""
        self._text = text
        now = time.monotonic()
        if now - self._started < _QUIET:
            return
        terminal = self._stream.isatty()
        if terminal:
            self._show()
        elif not self._said or now - self._written >= _EVERY:
            self._write(f"waiting for {text} ({_duration(now - self._started)})\n")
            self._written = now
        self._said = True

    def _show(self) -> None:
        line = f"waiting for {self._text}"
        if self._spinner is None:
            self._spinner = _spinner(self._stream, line)
        if self._spinner:
            self._spinner.update(line)
        else:
            waited = _duration(time.monotonic() - self._started)
            self._write(f"\r\x1b[K{line} ({waited})")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads it any more
            return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._spinner:
            self._spinner.stop()
        elif self._said and self._stream.isatty():
            self._write("\r\x1b[K")
        if self._said and kind is None:
            waited = _duration(time.monotonic() - self._started)
            self._write(f"waited {waited} for {self._text}\n")


def _spinner(stream: TextIO, line: str) -> Any:
    """A spinner of rich's, False where rich is not installed."""
    try:
        from rich.console import Console  # noqa: PLC0415 - an extra, and slow to import
        from rich.markup import escape  # noqa: PLC0415
        from rich.status import Status  # noqa: PLC0415
    except ImportError:
        return False
    status = Status(escape(line), console=Console(file=stream))
    status.start()
    return status


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
