"""What the supervision above this package hangs in; the defaults do without it."""

from __future__ import annotations

from monarch._actor.pickling import pack
from monarch._failure import MeshFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from monarch._actor.cell import Cell

__all__ = ["Hooks", "hooks"]


class Hooks:
    """Points at which a floor above takes part.

    Attributes:
        failed: `(cell, endpoint, error, kind) -> bytes`: an actor of this process failed. Tells its
            owner, and gives what its callers get as a reply of status FAILED. `kind` is one of
            `init`, `error`, `aborted` and `undeliverable`.
        supervise: `(cell) -> coroutine | None`: meshes that the actor owns failed; runs where the
            actor's endpoints run. A coroutine where that is an event loop.
        ended: `(cell) -> None`: the actor has ended and its `__cleanup__` is through.

    """

    __slots__ = ("ended", "failed", "supervise")

    def __init__(self) -> None:
        self.failed: Callable[[Cell, str, BaseException, str], bytes] = _failed
        self.supervise: Callable[[Cell], Coroutine[Any, Any, None] | None] = _supervise
        self.ended: Callable[[Cell], None] = _ended


def _failed(cell: Cell, endpoint: str, error: BaseException, kind: str) -> bytes:
    """A failure record for the owner, made without the supervision above."""
    import os  # noqa: PLC0415 - only on the way out
    import time  # noqa: PLC0415

    from monarch._actor.process import process  # noqa: PLC0415 - it is above this module
    from monarch._actor.remote import causes_of  # noqa: PLC0415

    failure = MeshFailure(
        kind,
        cell.mesh_name,
        (cell.rank,),
        pid=os.getpid(),
        actor=cell.name,
        endpoint=endpoint,
        causes=causes_of(error),
        time=time.time(),
        death=f"{process().id:x}-{cell.actor:x}",
    )
    process().tell(cell.owner[0], "failure", (cell.owner[1], cell.mesh_id, failure))
    return pack(failure)


def _supervise(_cell: Cell) -> None:
    """Nobody keeps failures of what actors own."""


def _ended(cell: Cell) -> None:
    """Nobody wants to know."""


hooks = Hooks()
