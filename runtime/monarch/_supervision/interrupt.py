"""Ctrl-C in a client: once ends the program in order, twice at once.

The first one raises KeyboardInterrupt in the main thread, as Python does, so that `finally` and
`except` of the program's own run. The second one, while the first still unwinds or soon after it,
kills. A program that has a handler of its own for it keeps that, and so does a notebook or prompt.
"""

from __future__ import annotations

import sys

from monarch._actor.waiting import in_ipython

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

__all__ = ["STATUS", "Interrupts", "install", "interactive", "where"]

STATUS = 130
"""Exit status after an interrupt that kills, as shells give it."""
AGAIN = 5.0
"""Seconds within which a second Ctrl-C belongs to the first."""


class Interrupts:
    """The handler. `kill` ends the program at once; `first` is called with the first Ctrl-C."""

    def __init__(
        self, kill: Callable[[], object], first: Callable[[], object] = lambda: None
    ) -> None:
        self._kill = kill
        self._first = first
        self._last: float | None = None
        self.ending = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Raise, or kill when it is the second one."""
        from time import monotonic  # noqa: PLC0415 - cheap here, and not needed to import

        now = monotonic()
        again = self._last is not None and now - self._last < AGAIN
        if again or self.ending or isinstance(sys.exc_info()[1], KeyboardInterrupt):
            self._kill()
        self._last = now
        self._first()
        raise KeyboardInterrupt


def interactive() -> bool:
    """Whether a person types into this interpreter; there Ctrl-C ends a line, not the program."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or in_ipython()


def install(
    kill: Callable[[], object], first: Callable[[], object] = lambda: None
) -> Interrupts | None:
    """Take Ctrl-C over where nobody else has; None where it was left alone.

    Call it in the main thread; elsewhere it has no effect.
    """
    import signal  # noqa: PLC0415 - clients only
    import threading  # noqa: PLC0415 - clients only

    if interactive() or threading.current_thread() is not threading.main_thread():
        return None
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return None
    handler = Interrupts(kill, first)
    signal.signal(signal.SIGINT, handler)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _say
    return handler


def _say(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    place = where(traceback)
    text = "monarch: interrupted" + (f" at {place}" if place else "")
    try:
        print(text, file=sys.stderr)  # noqa: T201 - what is said instead of a traceback
    except (OSError, ValueError):
        return


def where(traceback: TracebackType | None) -> str:
    """The innermost place of the program's own in a traceback, as `file:line in function`."""
    place = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        module = str(traceback.tb_frame.f_globals.get("__name__", ""))
        head = module.partition(".")[0]
        if head not in _OTHERS and not code.co_filename.startswith("<frozen"):
            place = f"{code.co_filename}:{traceback.tb_lineno} in {code.co_name}"
        traceback = traceback.tb_next
    return place


_OTHERS = {"monarch", "asyncio", "threading", "concurrent", "selectors", "runpy"}
