"""How futures are waited for: by a blocked thread, in our event loop, and in one of the user's."""

# ruff: noqa: SLF001 - endpoints, handles and futures know each other
from __future__ import annotations

import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Generator
    from typing import Any

    from monarch._actor.future import Future
    from monarch._core import Worker

__all__ = ["arrive", "block", "in_ipython", "loop_workers", "running_loop"]

_modules = sys.modules

loop_workers: dict[Any, Worker] = {}
"""The worker of each event loop that waited for one of our futures."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread; asks without loading asyncio."""
    events = _modules.get("asyncio.events")
    return None if events is None else events._get_running_loop()


def in_ipython() -> bool:
    """Whether IPython runs this program: in a notebook, whose loop runs its cells, or a prompt."""
    shell = getattr(_modules.get("IPython"), "get_ipython", None)
    return shell is not None and shell() is not None


def block(future: Future[Any], timeout: float | None) -> None:
    """Wait in this thread until the future is settled.

    Raises:
        TimeoutError: it was not in time.
        RuntimeError: this is an async endpoint, whose loop it would block.

    """
    loop = running_loop()
    if loop is not None:
        # Whether it is there already is chance, and so not asked: a mistake shows each time.
        _allow_blocking(loop, future)
    end = None if timeout is None else monotonic() + timeout
    due = future._due()
    if end is not None and not future._strict:
        due = None
    if due is not None and (end is None or due < end):
        end = due
    while not future._state:
        wanted = future._wants()
        if wanted is not None:
            inbox, count = wanted
            left = None if end is None else end - monotonic()
            if not inbox.wait(count, left if left is None or left > 0 else 0.0):
                future._advance()
                if future._state:
                    return
                if due is not None and end == due:
                    future._expire()
                    return
                raise TimeoutError(future._late(timeout or 0.0))
        future._advance()


def arrive(future: Future[Any]) -> Generator[Any, None, None]:
    """Wait inside a coroutine until the future is settled.

    Raises:
        RuntimeError: no event loop runs in this thread.

    """
    future._advance()
    if future._state:
        return
    loop = running_loop()
    if loop is None:
        raise RuntimeError(
            "await needs a running asyncio event loop; in plain code write .get() in its place"
        )
    worker = _worker_of(loop)
    due = future._due()
    while not future._state:
        wanted = future._wants()
        if wanted is not None:
            inbox, count = wanted
            waiter = loop.create_future()
            if not inbox.subscribe(worker, count, waiter):
                timer = None
                if due is not None:
                    timer = loop.call_later(max(due - monotonic(), 0.0), _wake, waiter)
                try:
                    yield from waiter
                except BaseException:
                    inbox.unsubscribe(waiter)
                    raise
                finally:
                    if timer is not None:
                        timer.cancel()
                if due is not None and inbox.arrived < count and monotonic() >= due:
                    inbox.unsubscribe(waiter)
                    future._advance()
                    if not future._state:
                        future._expire()
                    return
        future._advance()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _worker_of(loop: asyncio.AbstractEventLoop) -> Worker:
    worker: Worker | None = getattr(loop, "monarch_worker", None)
    if worker is not None:
        return worker
    found = loop_workers.get(loop)
    return found if found is not None else _attend(loop)


def _attend(loop: asyncio.AbstractEventLoop) -> Worker:
    """Let a loop that is not ours be woken when something arrives for it."""
    from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

    for old in [known for known in loop_workers if known.is_closed()]:
        del loop_workers[old]
    worker = process().engine.foreign_worker()

    def drain() -> None:
        while (item := worker.next(0)) is not None:
            if item[0] == 1:
                _wake(item[1])

    loop.add_reader(worker.fileno(), drain)
    loop_workers[loop] = worker
    return worker


def _allow_blocking(loop: asyncio.AbstractEventLoop, future: Future[Any]) -> None:
    """Nothing, where a thread that runs an event loop may block; warns where it should not."""
    asyncio = _modules["asyncio"]
    if hasattr(loop, "monarch_worker"):
        if asyncio.current_task() is not None:
            raise RuntimeError(
                f"{future._title()}: .get() in an async endpoint would block every actor of its "
                "event loop. Write `await` in its place, without .get()"
            )
        _refuse_own_loop(loop, future)
        return
    if in_ipython():
        return
    import warnings  # noqa: PLC0415 - only where there is something to say

    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_GETTING):
        depth, frame = depth + 1, frame.f_back
    if frame.f_code.co_filename.startswith(_OURS):
        return  # a function of ours that blocks, as job.kill(): nothing else can be written there
    warnings.warn(
        f"{future._title()}: .get() blocks the running event loop until the answer is there. "
        "Write `await` in its place, without .get()",
        RuntimeWarning,
        stacklevel=depth,
    )


def _refuse_own_loop(loop: asyncio.AbstractEventLoop, future: Future[Any]) -> None:
    """A plain endpoint on the event loop may wait, but not for an actor of the same loop."""
    from monarch._actor.cell import cells  # noqa: PLC0415 - it is above this module
    from monarch._actor.process import process  # noqa: PLC0415

    for proc, actor in future._receivers():
        cell = cells.get(actor)
        if proc == process().id and cell is not None and cell.home is loop:
            raise RuntimeError(
                f"{future._title()}: .get() would wait for ever: actor {cell.name!r} lives on the "
                "event loop that it would block. Make the endpoint that waits `async`, and write "
                "`await` in its place, without .get()"
            )


_OURS = __file__.rpartition("_actor")[0]
_GETTING = tuple(f"{_OURS}_actor/{name}.py" for name in ("waiting", "future", "calls"))
