"""The event loops of a process: where actors with async endpoints live.

The loop's selector waits in the engine, so that a message is handled by the thread that read it:
an async endpoint's first step runs as soon as its message is there, before the loop turns.
"""

# ruff: noqa: SLF001 - the loop and its tasks, whose queue it fills
from __future__ import annotations

import asyncio
import selectors
import sys
from _thread import get_ident
from time import monotonic

from monarch._actor import lifecycle
from monarch._actor.cancel import Interrupted, Slot, catch_signal
from monarch._actor.cell import cells
from monarch._actor.cleanup import clean_up
from monarch._actor.current import current
from monarch._actor.pickling import loads
from monarch._actor.replies import CANCELLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from monarch._actor.cell import Cell
    from monarch._actor.signature import Method
    from monarch._core import Request, Worker

__all__ = ["ActorLoop", "run_loop"]

_LAST_WORDS_S = 0.5
_LOOP_RUNS = ("asyncio.run() cannot be called from a", "This event loop is", "Cannot run the event")


class ActorLoop(asyncio.SelectorEventLoop):
    """An event loop that takes messages of actors where others wait for descriptors."""

    def __init__(self, worker: Worker) -> None:
        self.monarch_worker = worker
        selector = _Selector()
        super().__init__(selector)
        self.serve = _Server(self, self._ready).serve  # type: ignore[attr-defined]
        selector.join(self, worker)


class _Selector(selectors.DefaultSelector):
    """Waits in the engine, for messages and for the descriptors of the loop together."""

    def join(self, loop: ActorLoop, worker: Worker) -> None:
        self._worker = worker
        self._take = worker.next
        self._loop = loop
        self._ready: Any = loop._ready  # type: ignore[attr-defined]
        self._timers: list[Any] = loop._scheduled  # type: ignore[attr-defined]
        self._serve = loop.serve
        worker.attach(self.fileno())

    def select(self, timeout: float | None = None) -> list[Any]:
        """What is readable or writable; messages that come meanwhile are handled."""
        if self._worker.stopped:
            return self._select_alone(timeout)
        ready, timers = self._ready, len(self._timers)
        end = monotonic() + timeout if timeout else None
        left = timeout
        while True:
            item = self._take(left)
            if item is None:
                if self._worker.stopped:
                    self._loop.stop()
                return []
            if item[0] == 0:
                self._serve(*item[1:])
                item = None
            elif item[0] == 1:
                if not item[1].done():
                    item[1].set_result(None)
            else:
                return super().select(0)
            if ready or timeout == 0 or len(self._timers) != timers:
                return []
            if end is not None:
                left = max(end - monotonic(), 0.0)

    def _select_alone(self, timeout: float | None) -> list[Any]:
        return super().select(timeout)


class _Server:
    """Runs the messages of actors on a loop."""

    __slots__ = ("loop", "ready", "slot", "start")

    def __init__(self, loop: ActorLoop, ready: Any) -> None:
        self.loop = loop
        self.ready = ready
        self.slot = Slot(get_ident())
        catch_signal(self.slot)
        self.start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]] = (
            self._start_eager if sys.version_info >= (3, 12) else self._start_now
        )

    def serve(
        self, cell: Cell | None, name: str, data: Any, buffers: Any, request: Request
    ) -> None:
        """Handle one message up to where it first waits."""
        current.set(request)
        try:
            method, bound = cell.methods[name]  # type: ignore[union-attr]
        except (AttributeError, KeyError):
            method = None
        if method is None or request.flags:
            self._serve_other(cell, name, data, buffers, request)
            return
        try:
            args, kwargs = loads(data, buffers)
        except BaseException as error:  # noqa: BLE001 - its caller is told
            self._raised(cell, name, request, lifecycle.searched(error))  # type: ignore[arg-type]
            return
        try:
            if method.asynchronous:
                self._begin(cell, name, method, bound(*args, **kwargs), request)  # type: ignore[arg-type]
                return
            self.slot.running = request
            result = bound(*args, **kwargs)
            self.slot.running = None
            if request.answer(result):
                return
            lifecycle.reply(request, result)
        except BaseException as error:  # noqa: BLE001 - whatever it is, its caller is told
            self.slot.running = None
            self._raised(cell, name, request, error)  # type: ignore[arg-type]
            return
        request.finish()

    def _begin(
        self,
        cell: Cell,
        name: str,
        method: Method,
        body: Coroutine[Any, Any, Any],
        request: Request,
    ) -> None:
        if method.concurrent:
            task = self.start(self._run(cell, name, body, request, finish=False))
            request.finish()
        else:
            task = self.start(self._run(cell, name, body, request, finish=True))
        if not task.done():
            cell.running[request] = task

    async def _run(
        self,
        cell: Cell,
        name: str,
        body: Coroutine[Any, Any, Any],
        request: Request,
        *,
        finish: bool,
    ) -> None:
        try:
            try:
                result = await body
            finally:
                self.slot.running = None  # a child that was forked in there ends here
            if not request.flags and not request.answer(result):
                lifecycle.reply(request, result)
        except asyncio.CancelledError as error:
            if request.cancelled or cell.ended is not None:
                if request.wants_reply:
                    request.reply(CANCELLED, b"", None)
            else:
                await self._end_of(cell, name, request, error)
        except BaseException as error:  # noqa: BLE001 - whatever it is, its caller is told
            await self._end_of(cell, name, request, error)
        cell.running.pop(request, None)
        if finish:
            request.finish()

    async def _end_of(self, cell: Cell, name: str, request: Request, error: BaseException) -> None:
        """An endpoint raised: its caller is told, or its actor fails."""
        if isinstance(error, asyncio.CancelledError) and request.wants_reply:
            lifecycle.tell_any(request, error)
        elif cell.ended is None and not lifecycle.tell(request, error):
            await self._fail(cell, name, request, error)

    async def _fail(
        self,
        cell: Cell,
        name: str,
        request: Request | None,
        error: BaseException,
        kind: str = "error",
    ) -> None:
        payload = lifecycle.failure_of(cell, name, error, kind, request)
        await self._close(cell, payload, error)

    async def _close(self, cell: Cell, payload: bytes, error: BaseException | None) -> None:
        """Cancel what still runs, then `__cleanup__`, then the actor takes no more calls."""
        own = asyncio.current_task()
        others = [task for task in list(cell.running.values()) if task is not own]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        try:
            cleaning = clean_up(cell, error)
            if cleaning is not None and hasattr(cleaning, "__await__"):
                await cleaning
        except Exception as later:
            if error is None:
                raise
            later.__context__ = error
        finally:
            lifecycle.closed(cell, payload)

    def _raised(self, cell: Cell, name: str, request: Request, error: BaseException) -> None:
        """A plain endpoint raised, or the arguments of an async one do not fit."""
        if type(error) is RuntimeError and str(error).startswith(_LOOP_RUNS):
            error.add_note(
                f"{cell.cls.__qualname__} has async endpoints, so {name!r} runs on their loop too: "
                "make it `async def`, and `await` there"
            )
        if isinstance(error, Interrupted):
            lifecycle.raised(cell, name, request, error)
        elif not lifecycle.tell(request, error):
            self._start_other(cell, request, self._fail(cell, name, request, error))
            return
        request.finish()

    def _serve_other(
        self, cell: Cell | None, name: str, data: Any, buffers: Any, request: Request
    ) -> None:
        """Handle what is no plain call: the beginning and the end of an actor, ports, failures."""
        flags = request.flags
        try:
            if flags & lifecycle.CREATE:
                lifecycle.create(self.slot, data, buffers, request, self.loop)
            elif cell is None or cell.instance is None:
                lifecycle.refuse(cell, request)
            elif flags & lifecycle.STOP:
                self._start_other(cell, request, self._stop(cell, request, data, buffers))
                return
            elif flags & lifecycle.SUPERVISE:
                outcome = lifecycle.told(cell, loads(data, buffers))
                if outcome is not None:
                    self._start_other(cell, request, self._ask(cell, name, request, outcome))
                    return
            elif not name:
                lifecycle.reply(request, value=True)
            else:
                self._call_other(cell, name, data, buffers, request)
                return
        except BaseException as error:  # noqa: BLE001 - whatever it is, its caller is told
            self.slot.running = None
            found = cell or cells.get(request.actor)
            if found is not None:
                self._raised(found, name, request, error)
                return
            lifecycle.failed(None, name, request, error)
        request.finish()

    async def _ask(
        self, cell: Cell, name: str, request: Request, answer: Coroutine[Any, Any, None]
    ) -> None:
        """Ask an actor, one thing after the other, beside endpoints of it that wait."""
        try:
            if cell.asking is None:
                cell.asking = asyncio.Lock()
            async with cell.asking:
                await answer
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - the actor fails with it
            await self._fail(cell, name, request, error)
        finally:
            answer.close()  # where its turn never came

    def _call_other(self, cell: Cell, name: str, data: Any, buffers: Any, request: Request) -> None:
        """An endpoint that replies through a port, or a method that is no endpoint."""
        explicit = bool(request.flags & lifecycle.EXPLICIT)
        method, bound = cell.find(name, explicit=explicit)
        args, kwargs = loads(data, buffers)
        if explicit:
            from monarch._actor.ports import reply_port  # noqa: PLC0415 - few endpoints have one

            args = (reply_port(request), *args)
        if method.asynchronous:
            self._begin(cell, name, method, bound(*args, **kwargs), request)
            return
        self.slot.running = request
        result = bound(*args, **kwargs)
        self.slot.running = None
        if not explicit:
            lifecycle.reply(request, result)
        request.finish()

    def _start_other(self, cell: Cell, request: Request, body: Coroutine[Any, Any, None]) -> None:
        task = self.start(self._finished(cell, request, body))
        if not task.done():
            cell.running[request] = task

    async def _finished(
        self, cell: Cell, request: Request, body: Coroutine[Any, Any, None]
    ) -> None:
        try:
            await body
        except Exception as error:  # noqa: BLE001 - its caller is told
            lifecycle.tell(request, error)
        finally:
            cell.running.pop(request, None)
            request.finish()

    async def _stop(self, cell: Cell, request: Request, data: Any, buffers: Any) -> None:
        how, reason = lifecycle.stop_order(data, buffers)
        if how == "abort":
            error = lifecycle.Aborted(reason)
            await self._fail(cell, "", request, error, "aborted")
            return
        await self._close(cell, lifecycle.stopped(cell, reason), None)
        lifecycle.reply(request, value=True)

    def _start_eager(self, body: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.Task(body, loop=self.loop, eager_start=True)  # type: ignore[call-arg]

    def _start_now(self, body: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """As eager tasks of later Pythons: the step that was queued last runs at once."""
        task = self.loop.create_task(body)
        self.ready.pop()._run()
        return task


def run_loop(worker: Worker, message: tuple[Any, ...] | None = None) -> None:
    """Run an event loop in this thread until the engine stops; `message` is handled first."""
    loop = ActorLoop(worker)
    if message is not None:
        loop.call_soon(loop.serve, *message)
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        _wind_up(loop)


def _wind_up(loop: ActorLoop) -> None:
    """Let what was cancelled say its last words, for half a second."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=_LAST_WORDS_S))
    for task in tasks:
        if not task.done():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
    asyncio.set_event_loop(None)
    loop.close()
