"""`__cleanup__`, the last thing that an actor does, for as long as it may take."""

from __future__ import annotations

from _thread import get_ident
from time import monotonic

from monarch import config
from monarch._actor.cancel import Interrupted, interrupt, slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from monarch._actor.cancel import Slot
    from monarch._actor.cell import Cell

__all__ = ["clean_up"]


def clean_up(cell: Cell, error: BaseException | None) -> Any:
    """Run the actor's `__cleanup__`; gives a coroutine where that is async.

    Raises:
        TimeoutError: it was still running after `cleanup_timeout`, and was given up.

    """
    method = getattr(cell.instance, "__cleanup__", None)
    if method is None:
        return None
    limit: float = config.value("cleanup_timeout")
    here = get_ident()
    slot = next((one for one in slots if one.ident == here), None)
    found = method(error) if slot is None else _plain(method, error, cell, slot, limit)
    return _async(found, cell, limit) if hasattr(found, "__await__") else found


def _plain(
    method: Callable[..., Any], error: BaseException | None, cell: Cell, slot: Slot, limit: float
) -> Any:
    from contextlib import suppress  # noqa: PLC0415 - few actors clean up

    from monarch._actor.deadlines import watch  # noqa: PLC0415 - as above

    before, running = slot.running, _Running(slot)
    slot.running = running
    with suppress(RuntimeError):  # the interpreter exits, and starts no thread that would watch
        watch(monotonic() + limit, running)  # type: ignore[arg-type]
    try:
        return method(error)
    except Interrupted:
        if not running.late:
            raise
        raise TimeoutError(_late(cell, limit)) from None
    finally:
        running.arrived = 1
        slot.running = before


async def _async(cleaning: Any, cell: Cell, limit: float) -> Any:
    import asyncio  # noqa: PLC0415 - who has coroutines has it loaded

    scope = asyncio.timeout(limit)
    try:
        async with scope:
            return await cleaning
    except TimeoutError:
        if not scope.expired():
            raise
        raise TimeoutError(_late(cell, limit)) from None


def _late(cell: Cell, limit: float) -> str:
    return (
        f"__cleanup__ of actor {cell.name!r} was given up after {limit:g} s; the setting "
        "cleanup_timeout gives it longer"
    )


class _Running:
    """A `__cleanup__` that a thread runs, to be interrupted when its time is over.

    It stands where a thread has the request that it handles, and is no call that can be cancelled.
    """

    __slots__ = ("__weakref__", "_slot", "arrived", "expected", "late")

    reply_proc = reply_inbox = rank = actor = 0

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self.late = False
        self.arrived, self.expected = 0, 1

    @property
    def _inbox(self) -> _Running:
        return self

    def done(self) -> bool:
        """Whether it has come to its end."""
        return bool(self.arrived)

    def cancel(self) -> None:
        """Nothing: it is gone."""

    def _expire(self) -> None:
        self.late = True
        interrupt(self._slot, self)
