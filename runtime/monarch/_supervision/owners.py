"""The way of a failure: to the owner, from owner to owner, and to the client's hook."""

from __future__ import annotations

from _thread import allocate_lock

from monarch._actor.cell import cells
from monarch._actor.pickling import pack
from monarch._restart import Decision
from monarch._supervision.climb import ROOT, Ask, Climb, Tell, together
from monarch._supervision.describe import failed_actor
from monarch._supervision.hook import is_default, report_unhandled
from monarch._supervision.restarts import Restarts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from monarch._actor.cell import Cell
    from monarch._actor.process import Process
    from monarch._failure import MeshFailure

__all__ = ["Owners"]

SUPERVISE, BESIDE = 4, 128
_TOGETHER_S = 0.02
"""How long failures of constructors are waited for, to report all ranks of a mesh at the end."""


class Owners:
    """The failures that this process has part in.

    Args:
        process: this process.
        root: process and actor that own this process; None in a client.
        end: `end(status, report)` ends the program; never returns in a client.

    """

    def __init__(
        self,
        process: Process,
        root: tuple[int, int] | None,
        end: Callable[[int, str], object],
    ) -> None:
        self._process = process
        self._root = root
        self._end = end
        self._lock = allocate_lock()
        self._climb = Climb(process.id, root, "", _find)
        self._asking = False
        self.restarts = Restarts(process, self._climbs)

    def failed(self, cell: Cell, endpoint: str, error: BaseException, kind: str) -> bytes:
        """An actor of this process failed: its owner is told; gives the reply to its callers."""
        from monarch._mesh.controller import is_controller  # noqa: PLC0415 - only on the way out

        failure = failed_actor(cell, endpoint, error, kind, self._process.id)
        if not is_controller(cell.actor):
            self.tell(cell.owner, failure)
        return pack(failure)

    def tell(self, owner: tuple[int, int], failure: MeshFailure) -> None:
        """Bring a failure before an owner, in any process."""
        if owner[0] == self._process.id:
            self.arrived(owner[1], failure)
        else:
            self._process.tell(owner[0], "failure", (owner[1], 0, failure))

    def arrived(self, actor: int, failure: MeshFailure) -> None:
        """A failure for an owner in this process. May be called by any thread."""
        if self.restarts.actor_failed(actor, failure):
            return
        self._climbs(actor, failure)

    def _climbs(self, actor: int, failure: MeshFailure) -> None:
        with self._lock:
            effects = self._climb.arrived(actor, failure)
        self._do(effects)

    def supervise(self, cell: Cell) -> Coroutine[Any, Any, None] | None:
        """Ask an owner about what waits for it.

        Between two messages where it has a thread; on a loop also while an endpoint of it waits.
        """
        handler = getattr(cell.instance, "__supervise__", None)
        if cell.loop:
            return self._ask_later(cell.actor, handler)
        for failure in self._take(cell.actor):
            handled, remark = False, ""
            try:
                answer = None if handler is None else handler(failure)
                handled, remark = self._decided(answer, failure)
            except Exception as error:  # noqa: BLE001 - it climbs on, and says so
                remark = _raised(error)
            finally:
                if not handled:
                    self._pass_on(cell.actor, failure, remark)
        return None

    def ended(self, cell: Cell) -> None:
        """An actor of this process has ended: what waits for it climbs on."""
        with self._lock:
            effects = self._climb.leave(cell.actor)
        self._do(effects)

    def settle(self) -> None:
        """Return once the hook has been called with all that has arrived."""
        import time  # noqa: PLC0415 - tests only

        while self._asking:
            time.sleep(0.001)

    async def _ask_later(self, actor: int, handler: Any) -> None:
        failures = self._take(actor)
        try:
            while failures:
                await self._ask_about(actor, handler, failures.pop(0))
        finally:
            for failure in failures:  # it ends: others are to hear of them
                self._pass_on(actor, failure, "")

    async def _ask_about(self, actor: int, handler: Any, failure: MeshFailure) -> None:
        handled, remark = False, ""
        try:
            answer: Any = None if handler is None else handler(failure)
            if hasattr(answer, "__await__"):
                answer = await answer
            handled, remark = self._decided(answer, failure)
        except Exception as error:  # noqa: BLE001 - it climbs on, and says so
            remark = _raised(error)
        finally:
            if not handled:
                self._pass_on(actor, failure, remark)

    def _decided(self, answer: object, failure: MeshFailure) -> tuple[bool, str]:
        """Whether an owner's answer settles a failure, and what there is to say if not."""
        if answer is not Decision.RESTART or self.restarts.decided(failure):
            return bool(answer), ""
        return False, "it wanted a restart of what is not its own, or is over"

    def _take(self, actor: int) -> list[MeshFailure]:
        with self._lock:
            return self._climb.take(actor)

    def _pass_on(self, actor: int, failure: MeshFailure, remark: str) -> None:
        with self._lock:
            effects = self._climb.passed(actor, failure, remark)
        self._do(effects)

    def _do(self, effects: Iterable[Ask | Tell]) -> None:
        for effect in effects:
            if isinstance(effect, Tell):
                body = (effect.actor, 0, effect.failure)
                self._process.tell(effect.proc, "failure", body)
            elif effect.actor != ROOT:
                engine = self._process.engine
                target = engine.targets([self._process.id], [effect.actor])
                engine.cast(target, "", pack(None), None, 0, b"", SUPERVISE | BESIDE)
            elif self._root is None:
                self._call_hook()
            else:
                for failure in self._take(ROOT):
                    self._pass_on(ROOT, failure, "")

    def _call_hook(self) -> None:
        with self._lock:
            if self._asking:
                return
            self._asking = True
        self._process.start_thread(self._ask_hook, "monarch-fault")

    def _ask_hook(self) -> None:
        while True:
            with self._lock:
                if not self._climb.waits(ROOT):
                    self._asking = False
                    return
                gather = self._climb.waits(ROOT)[0].kind == "init"
            ends = is_default()
            if gather and ends:
                import time  # noqa: PLC0415 - only on the way out

                time.sleep(_TOGETHER_S)
            taken = self._take(ROOT)
            for failure in together(taken) if ends else taken:
                if report_unhandled(failure, self._end) is Decision.RESTART:
                    self.restarts.decided(failure)


def _find(actor: int) -> tuple[str, tuple[int, int]] | None:
    cell = cells.get(actor)
    return None if cell is None else (f"{cell.cls.__qualname__} {cell.name!r}", cell.owner)


def _raised(error: BaseException) -> str:
    return f"its __supervise__ raised {type(error).__name__}: {error}"
