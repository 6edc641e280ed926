"""The work loop: a thread takes the messages of the actors at home with it and runs them.

A plain endpoint runs here and now, in the thread that read its message. What is rare (creating and
ending actors, explicit ports, errors) is in `lifecycle`; event loops are in `loop`.
"""

from __future__ import annotations

import _pickle
from _thread import get_ident

from monarch._actor import lifecycle
from monarch._actor.cancel import Interrupted, Slot, cancel, catch_signal, slots
from monarch._actor.current import current
from monarch._actor.pickling import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from monarch._actor.process import Process
    from monarch._core import Worker

__all__ = ["cancel", "start_worker", "work"]


def work(worker: Worker) -> None:
    """Handle messages until the engine stops. In a proc, its main thread does nothing else."""
    take = worker.next
    slot = Slot(get_ident())
    catch_signal(slot)
    set_current = current.set
    read = _pickle.loads
    args: tuple[Any, ...] | None = None
    while True:
        try:
            item = take(None)
            if item is None:
                if worker.stopped:
                    return
                continue
            if item[0]:
                continue
            _, cell, name, data, buffers, request = item
            item = None
            set_current(request)
            try:
                plain = cell.plain[name]
            except (AttributeError, KeyError):
                plain = None
            if plain is None:
                if worker.is_loop:
                    # The process's first actor is one of the event loop, which takes this thread.
                    slots.remove(slot)
                    _run_loop(worker, (cell, name, data, buffers, request))
                    return
                lifecycle.handle(slot, cell, name, data, buffers, request)
                continue
            try:
                args, kwargs = read(data) if buffers is None else loads(data, buffers)
                slot.running = request
                result = plain(cell.instance, *args, **kwargs)
                slot.running = None
                # What pickle does by itself goes in one step.
                if request.answer(result):
                    args = kwargs = result = data = buffers = request = None
                    continue
                lifecycle.reply(request, result)
            except BaseException as error:  # noqa: BLE001 - whatever it is, its caller is told
                slot.running = None
                lifecycle.raised(cell, name, request, error, unread=args is None)
            request.finish()
            args = kwargs = result = data = buffers = request = None
        except Interrupted:
            # Aimed at a call that had just ended.
            slot.running = None


def start_worker(process: Process, worker: Worker) -> None:
    """Give a worker that the engine asked for its thread."""
    if worker.is_loop:
        process.start_thread(lambda: _run_loop(worker, None), "monarch-loop")
    else:
        process.start_thread(lambda: work(worker), f"monarch-worker-{worker.index}")


def _run_loop(worker: Worker, message: tuple[Any, ...] | None) -> None:
    from monarch._actor.loop import run_loop  # noqa: PLC0415 - asyncio is heavy

    run_loop(worker, message)
