"""Interrupting a call whose caller gave it up."""

from __future__ import annotations

from monarch._actor.cell import cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._core import Request

__all__ = ["Interrupted", "Slot", "cancel", "catch_signal", "interrupt", "leave", "slots"]

_SIGURG = 23
"""Ignored by default, so that one that comes late does nothing."""


class Interrupted(BaseException):
    """Raised in a plain endpoint whose caller's deadline is over, or who cancelled the call."""


class Slot:
    """What one working thread runs: `running` is the request whose endpoint runs there now."""

    __slots__ = ("aimed", "ident", "running", "signalled")

    def __init__(self, ident: int) -> None:
        self.ident = ident
        self.running: Request | None = None
        self.aimed: Request | None = None
        self.signalled = False
        slots.append(self)


slots: list[Slot] = []
"""All working threads of this process."""


class _Left(Slot):
    """The slot of a thread that came with a fork: back from the endpoint, the process ends.

    Its link, and the call, are those of the process that was forked.
    """

    __slots__ = ()

    @property
    def running(self) -> None:
        return None

    @running.setter
    def running(self, _request: Request | None) -> None:
        import contextlib  # noqa: PLC0415 - here and now
        import os  # noqa: PLC0415 - as above
        import sys  # noqa: PLC0415 - as above

        error = sys.exc_info()[1]
        code = error.code if isinstance(error, SystemExit) else error is not None
        if code is not None and not isinstance(code, int):
            code = 1
        if not isinstance(error, SystemExit):
            text = (
                f"monarch: process {os.getpid()}, forked in an endpoint, came back from it and was "
                "ended; who forks has the child end by os._exit()\n"
            )
            with contextlib.suppress(OSError):
                os.write(2, text.encode())
        os._exit(code or 0)


def leave() -> None:
    """Forget what runs, in a forked child: it is the parent's."""
    for slot in slots:
        slot.__class__ = _Left
    slots.clear()


def cancel(request: Request) -> None:
    """End what runs for this request, if it still does. Called by the control thread."""
    wanted = _key(request)
    cell = cells.get(request.actor)
    for running, task in list(cell.running.items()) if cell is not None else ():
        if _key(running) == wanted:
            task.get_loop().call_soon_threadsafe(task.cancel)
            return
    for slot in slots:
        running = slot.running
        if running is not None and _key(running) == wanted:
            interrupt(slot, running)
            return


def _key(request: Request) -> tuple[int, ...]:
    """What tells a call from any other: the answer that it waits for."""
    return request.reply_proc, request.reply_inbox, request.rank, request.actor


def interrupt(slot: Slot, request: Request) -> None:
    """Raise `Interrupted` in the thread of a slot, if this request still runs there."""
    if slot.signalled:
        # The handler runs in that thread itself, and looks whether the call still runs. A signal
        # also ends a system call that waits.
        import signal  # noqa: PLC0415 - few calls are cancelled

        slot.aimed = request
        signal.pthread_kill(slot.ident, _SIGURG)
        return
    import ctypes  # noqa: PLC0415 - few calls are cancelled

    aim = ctypes.pythonapi.PyThreadState_SetAsyncExc
    ident = ctypes.c_ulong(slot.ident)
    what = ctypes.py_object(Interrupted)
    # No other thread runs between the look and the shot: the interpreter switches threads at
    # calls of Python functions and at jumps back, and there is neither.
    if slot.running is request:
        aim(ident, what)


def catch_signal(slot: Slot) -> None:
    """Let cancelled calls of this thread be ended by a signal, if it is a proc's main one."""
    from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

    if process().parent is None or slot.ident != _main_thread():
        return
    import _signal  # noqa: PLC0415 - without the enumerations of `signal`

    def handle(_number: int, _frame: object) -> None:
        aimed, slot.aimed = slot.aimed, None
        if aimed is not None and slot.running is aimed:
            raise Interrupted

    _signal.signal(_SIGURG, handle)
    slot.signalled = True


def _main_thread() -> int | None:
    import threading  # noqa: PLC0415 - loaded by whoever started a thread

    return threading.main_thread().ident
