"""The rarer half of the work loop: actors begin, fail and end; ports; errors."""

# ruff: noqa: SLF001 - what an actor's class may define
from __future__ import annotations

from monarch._actor.cancel import Interrupted
from monarch._actor.cell import Cell, cells
from monarch._actor.cleanup import clean_up
from monarch._actor.hooks import hooks
from monarch._actor.log_prefix import look
from monarch._actor.pickling import dumps, loads, outline, pack
from monarch._actor.replies import CANCELLED, ERROR, FAILED, OK
from monarch.errors import SupervisionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from monarch._actor.cancel import Slot
    from monarch._core import Request

__all__ = ["BESIDE", "CREATE", "EXPLICIT", "LOOP", "STOP", "SUPERVISE", "handle", "raised"]

CREATE, STOP, SUPERVISE, LOOP, EXPLICIT, BESIDE = 1, 2, 4, 8, 16, 128


def handle(
    slot: Slot, cell: Cell | None, name: str, data: Any, buffers: Any, request: Request
) -> None:
    """Handle a message for an actor without event loop that is no call of a plain endpoint."""
    flags = request.flags
    try:
        if flags & CREATE:
            create(slot, data, buffers, request)
        elif cell is None or cell.instance is None:
            refuse(cell, request)
        elif flags & STOP:
            how, reason = stop_order(data, buffers)
            if how == "abort":
                fail(cell, name, Aborted(reason), "aborted", request)
            else:
                end(cell, None, reason)
                reply(request, value=True)
        elif flags & SUPERVISE:
            told(cell, loads(data, buffers))
        elif not name:
            reply(request, value=True)
        else:
            call(slot, cell, name, data, buffers, request)
    except BaseException as error:  # noqa: BLE001 - whatever it is, its caller is told
        slot.running = None
        failed(cell, name, request, error)
    request.finish()


def failed(cell: Cell | None, name: str, request: Request, error: BaseException) -> None:
    """Handling a message raised, in the endpoint or on the way to it."""
    cell = cell or cells.get(request.actor)
    if cell is not None:
        raised(cell, name, request, error)
    elif request.wants_reply:
        from monarch._actor.remote import dump_error  # noqa: PLC0415 - good calls do without

        request.reply(ERROR, *dump_error(error))


def call(slot: Slot, cell: Cell, name: str, data: Any, buffers: Any, request: Request) -> None:
    """Call an endpoint that replies through a port, or a method that is no endpoint."""
    explicit = bool(request.flags & EXPLICIT)
    method, bound = cell.find(name, explicit=explicit)
    if method.asynchronous:
        raise TypeError(
            f"{cell.cls.__qualname__}.{name} is async, and the class has no async method of its "
            "own: its actors have no event loop. Declare it `async def` in the class"
        )
    args, kwargs = loads(data, buffers)
    if explicit:
        from monarch._actor.ports import reply_port  # noqa: PLC0415 - few endpoints have one

        slot.running = request
        bound(reply_port(request), *args, **kwargs)
        slot.running = None
        return
    slot.running = request
    result = bound(*args, **kwargs)
    slot.running = None
    reply(request, result)


def reply(request: Request, value: object) -> None:
    """Answer a request, if an answer is wanted."""
    if request.wants_reply:
        data, buffers = dumps(value, "result")
        request.reply(OK, data, buffers)


def raised(
    cell: Cell, name: str, request: Request, error: BaseException, *, unread: bool = False
) -> None:
    """An endpoint raised, or its arguments cannot be read: tell its caller, or fail the actor."""
    if unread:
        error = searched(error)
    if isinstance(error, Interrupted):
        if request.wants_reply and not request.replied:
            request.reply(CANCELLED, b"", None)
        return
    if tell(request, error):
        return
    fail(cell, name, error, "error", request)


def tell(request: Request, error: BaseException) -> bool:
    """Answer with an exception; False where it is no caller's, and the actor fails with it."""
    if not isinstance(error, Exception) or not request.wants_reply or request.flags & EXPLICIT:
        return False
    tell_any(request, error)
    return True


def tell_any(request: Request, error: BaseException) -> None:
    """Answer with an exception."""
    from monarch._actor.remote import dump_error  # noqa: PLC0415 - good calls do without

    data, buffers = dump_error(error)
    request.reply(ERROR, data, buffers)


def create(
    slot: Slot | None, data: Any, buffers: Any, request: Request, home: object = None
) -> None:
    """Make an actor: its constructor runs here, before any of its endpoints.

    `home` is the event loop of this thread, if it runs one.
    """
    from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

    actor = request.actor
    try:
        made, kept = _first_and_last(loads(data, buffers))
        cls, args, kwargs, info = made
    except BaseException as error:  # noqa: BLE001 - it is the owner's to know
        _unmade(request, error, data, buffers)
        return
    cell = Cell(actor, cls, info, request.rank, request.extent)
    cell.home = home
    cells[actor] = cell
    process().engine.set_state(actor, cell)
    look()
    try:
        if slot is not None:
            slot.running = request
        instance = cls(*args, **kwargs)
        if kept is not None:
            instance.__restore__(loads(*kept))
        if slot is not None:
            slot.running = None
        cell.born(instance)
        look()  # the constructor may have imported it
    except BaseException as error:  # noqa: BLE001 - it is the owner's to know
        if slot is not None:
            slot.running = None
        fail(cell, "__init__", error, "init", request)
        return
    reply(request, value=True)


def _first_and_last(found: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """What an actor is made of, and its snapshot where it is made again with one.

    With one, both come pickled: (data, buffers) and (data, buffers).
    """
    if isinstance(found[0], type):
        return found, None
    return loads(*found[:2]), found[2:]


def _unmade(request: Request, error: BaseException, data: Any, buffers: Any) -> None:
    """The class or the arguments of an actor cannot be unpickled here; who it was to be can."""
    from monarch._actor.actor import Actor  # noqa: PLC0415 - only on the way out

    known = outline(data, buffers)
    if isinstance(known[0], bytes):  # with a snapshot, as in `_first_and_last`
        known = outline(*known[:2])
    cell = Cell(request.actor, Actor, known[3], request.rank, request.extent)
    fail(cell, "__init__", searched(error), "init", request)


def searched(error: BaseException) -> BaseException:
    """An error of unpickling; where a module is missing, it says where it was looked for."""
    if not isinstance(error, ImportError):
        return error
    import sys  # noqa: PLC0415 - only on the way out

    places = ", ".join(path or "." for path in sys.path)
    found = type(error)(f"{error}; this process searched {places}", name=error.name)
    return found.with_traceback(error.__traceback__)


def fail(
    cell: Cell, endpoint: str, error: BaseException, kind: str, request: Request | None = None
) -> None:
    """An actor failed: its owner is told, and its callers get the failure from now on."""
    payload = failure_of(cell, endpoint, error, kind, request)
    try:
        clean_up(cell, error)
    except Exception as later:  # noqa: BLE001 - the first error is the one to report
        later.__context__ = error
    finally:
        closed(cell, payload)


def failure_of(
    cell: Cell, endpoint: str, error: BaseException, kind: str, request: Request | None
) -> bytes:
    """Tell the owner of a failure, and the caller at hand; gives what later callers get."""
    cell.ended = f"it failed with {type(error).__name__}"
    if isinstance(error, Undelivered):
        kind = "undeliverable"
    payload = hooks.failed(cell, endpoint, error, kind)
    if request is not None and request.wants_reply:
        request.reply(FAILED, payload, None)
    return payload


def end(cell: Cell, error: BaseException | None, reason: str) -> None:
    """An actor ends because it was told to: `__cleanup__` runs, and then it takes no calls."""
    payload = stopped(cell, reason)
    try:
        clean_up(cell, error)
    finally:
        closed(cell, payload)


def stopped(cell: Cell, reason: str) -> bytes:
    """What callers of an actor that was told to end get."""
    cell.ended = f"it was stopped{f': {reason}' if reason else ''}"
    text = f"actor {cell.name!r} takes no calls: {cell.ended}"
    return pack(SupervisionError(text, None, (cell.rank,)))


def closed(cell: Cell, payload: bytes) -> None:
    """An actor is through with its `__cleanup__`: it takes no more calls."""
    from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

    cell.ends()
    cells.pop(cell.actor, None)
    process().engine.close_actor(cell.actor, FAILED, payload)
    while cell.on_end:
        cell.on_end.pop()()
    hooks.ended(cell)


class Aborted(Exception):  # noqa: N818 - the reason why an actor ended itself
    """An actor was ended by `abort` or `kill`."""


class Undelivered(Exception):  # noqa: N818 - the reason why an actor ended
    """A message of an actor was not delivered, and the actor does not deal with that."""


def told(cell: Cell, message: Any) -> Coroutine[Any, Any, None] | None:
    """An actor hears of failures of what it owns, or of a message that came back.

    Gives what is left of it to await where the actor lives on an event loop.
    """
    if message is None:
        return hooks.supervise(cell)
    if cell.loop:
        return _deal_later(cell, message)
    if not cell.instance._handle_undeliverable_message(message) and not message.died:
        raise Undelivered(str(message))
    return None


async def _deal_later(cell: Cell, message: Any) -> None:
    """Ask when it is its turn, and not before: who never comes to it has begun nothing."""
    answer = cell.instance._handle_undeliverable_message(message)
    if hasattr(answer, "__await__"):
        answer = await answer
    if not answer and not message.died:
        raise Undelivered(str(message))


def stop_order(data: Any, buffers: Any) -> tuple[str, str]:
    """How an actor is to end, `stop` or `abort`, and why."""
    order = loads(data, buffers)
    return order if isinstance(order, tuple) else ("stop", str(order or ""))


def refuse(cell: Cell | None, request: Request) -> None:
    """A message for an actor that is not there."""
    if request.wants_reply:
        why = "there is no such actor" if cell is None or not cell.ended else cell.ended
        error = SupervisionError(f"not delivered: {why}", None, (request.rank,))
        request.reply(FAILED, pack(error), None)


def end_oneself(cell: Cell, how: str, reason: str) -> None:
    """Stop or fail the actor that asks for it, when the message at hand is handled."""
    from monarch._actor.process import process  # noqa: PLC0415 - it is above this module

    engine = process().engine
    targets = engine.targets((engine.proc,), (cell.actor,))
    data, buffers = dumps((how, reason))
    engine.cast(targets, "", data, buffers, cell.actor, b"", STOP)
