"""What a coroutine waits for, down to the futures that the engine ends: all it cannot do without.

asyncio keeps no such list, but each task says what it waits for, and each future whom it tells.
Read in another thread than the loop's: what is found may be over by then, and is looked at twice.
"""

# ruff: noqa: SLF001 - asyncio has no other way to ask for it
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from typing import Any

    from monarch._actor.cell import Cell

__all__ = ["holder", "needed"]


def holder(cell: Cell) -> asyncio.Task[Any] | None:
    """The task that holds an actor up: that of the endpoint that it handles, if that is `async`."""
    for request, task in list(cell.running.items()):
        method = cell.methods.get(request.endpoint)
        if method is None or not method[0].concurrent:
            return task  # type: ignore[no-any-return]
    return None


def needed(task: asyncio.Task[Any]) -> set[int]:
    """The `id()` of all futures that have to be done before this task goes on.

    Where one of several is enough, none of them counts, unless only one is left.
    """
    found: set[int] = set()
    try:
        _follow(task, _Told(task.get_loop()), found)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
        return set()  # it changed meanwhile, or this Python's asyncio is another
    return found


def _follow(future: Any, told: _Told, found: set[int]) -> None:
    if future is None or id(future) in found or future.done():
        return
    found.add(id(future))
    if hasattr(future, "_fut_waiter"):  # a task
        _follow(future._fut_waiter, told, found)
        return
    parts = getattr(future, "_children", None)  # of gather()
    for part in told.behind(future) if parts is None else parts:
        _follow(part, told, found)


class _Told:
    """Who tells which futures of asyncio's own that it is done: tasks of a loop, and gathers."""

    def __init__(self, loop: Any) -> None:
        self._tellers: dict[int, list[tuple[Any, bool]]] = {}
        tellers = list(sys.modules["asyncio"].all_tasks(loop))
        known = set(map(id, tellers))
        for teller in tellers:
            for callback, _context in teller._callbacks or ():
                for future, enough in _told_by(callback):
                    self._tellers.setdefault(id(future), []).append((teller, enough))
                    if hasattr(future, "_children") and id(future) not in known:
                        known.add(id(future))
                        tellers.append(future)

    def behind(self, future: Any) -> list[Any]:
        """Those without whom a future is not done."""
        tellers = self._tellers.get(id(future), [])
        alternatives = [one for one, enough in tellers if enough]
        return [one for one, enough in tellers if not enough or len(alternatives) == 1]


def _told_by(callback: Any) -> Iterator[tuple[Any, bool]]:
    """The futures that a callback ends, and whether what it is a callback of does it alone."""
    group = getattr(callback, "__self__", None)
    if hasattr(group, "_on_completed_fut"):  # a TaskGroup
        yield group._on_completed_fut, False  # type: ignore[union-attr]
    for argument in getattr(callback, "args", ()):  # of a partial: wait_for(), before Python 3.12
        yield argument, True
    code, cells = getattr(callback, "__code__", None), getattr(callback, "__closure__", None)
    variables = {
        name: cell.cell_contents
        for name, cell in zip(getattr(code, "co_freevars", ()), cells or (), strict=False)
    }
    if "outer" in variables:  # shield() and gather()
        yield variables["outer"], True
    if "waiter" in variables:  # wait()
        yield variables["waiter"], variables.get("return_when") == "FIRST_COMPLETED"
