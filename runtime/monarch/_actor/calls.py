"""The futures of calls: what comes back, and the errors that it may be."""

# ruff: noqa: SLF001 - endpoints, handles and futures know each other
from __future__ import annotations

from sys import modules
from time import monotonic

from monarch._actor import replies
from monarch._actor.future import PENDING, VALUE, Future, late, seconds, settling
from monarch._actor.generic import R, R_co
from monarch._actor.pickling import loads
from monarch._shape.value_mesh import Unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from monarch._actor.endpoint import Endpoint
    from monarch._core import Inbox

__all__ = ["AllFuture", "OneFuture", "StreamFuture"]

_LARGE = 1 << 16  # bytes of a value that is unpickled only when it is looked at


class CallFuture(Future[R_co]):
    """A future of an endpoint's call."""

    __slots__ = ("_deadline", "_endpoint", "_inbox")

    _inbox: Inbox
    _endpoint: Endpoint[Any, Any]
    _deadline: float | None

    def __init__(self, inbox: Inbox, endpoint: Endpoint[Any, Any]) -> None:
        self._inbox = inbox
        self._endpoint = endpoint
        self._state = PENDING
        timeout = endpoint._timeout
        if timeout is None:
            self._deadline = None
        else:
            from monarch._actor.deadlines import watch  # noqa: PLC0415 - few calls have one

            self._deadline = monotonic() + timeout
            watch(self._deadline, self)

    def _due(self) -> float | None:
        return self._deadline

    def _title(self) -> str:
        return self._endpoint._title()

    def _receivers(self) -> list[tuple[int, int]]:
        route = self._endpoint._route
        pairs = list(zip(route.procs, route.actors, strict=True))
        if self._inbox.expected != len(pairs):
            return []
        return [pairs[rank] for rank in self._inbox.missing()]

    def _late(self, waited: float) -> str:
        return late(self._title(), waited, self._inbox.missing())

    def _timed_out(self) -> TimeoutError:
        """The error of a call whose own time is over; the work on the far side is cancelled."""
        error = TimeoutError(self._late(self._endpoint._timeout or 0.0) + "; it was cancelled")
        self._inbox.cancel()
        return error

    def _expire(self) -> None:
        with settling:
            if not self._state:
                self._fail(self._timed_out())


class OneFuture(CallFuture[R]):
    """The result of one actor."""

    __slots__ = ()

    def get(self, timeout: float | None = None) -> R:
        """As `Future.get`."""
        if not self._state:
            # The path of most calls; what is special goes the long way.
            if timeout is None and self._deadline is None and "asyncio.events" not in modules:
                try:
                    self._value = value = self._inbox.value()
                    if value is not NotImplemented:
                        self._state = VALUE
                        return value  # type: ignore[no-any-return]
                except Exception:  # noqa: BLE001, S110 - it comes again below, where it is dealt with
                    pass
            self._complete(timeout)
        elif timeout is not None:
            seconds(timeout)
        if self._state == VALUE:
            return self._value
        raise self._error.with_traceback(None)

    def _wants(self) -> tuple[Inbox, int] | None:
        return self._inbox, 1

    def _advance(self) -> None:
        inbox = self._inbox
        if self._state or not inbox.arrived:
            return
        _rank, status, data, buffers = inbox.get(0)
        if not status:
            try:
                self._value = loads(data, buffers)
            except Exception as error:  # noqa: BLE001 - the outcome is an error, whichever
                self._fail(replies.unreadable(self._endpoint, error))
            else:
                self._state = VALUE
        else:
            self._fail(replies.error_of(self._endpoint, 0, status, data, buffers))


class StreamFuture(CallFuture[R]):
    """The result that comes back at one place in the order of arrival."""

    __slots__ = ("_place",)

    def __init__(self, inbox: Inbox, endpoint: Endpoint[Any, Any], place: int) -> None:
        super().__init__(inbox, endpoint)
        self._place = place

    def _wants(self) -> tuple[Inbox, int] | None:
        return self._inbox, self._place + 1

    def _advance(self) -> None:
        inbox = self._inbox
        if self._state or inbox.arrived <= self._place:
            return
        value, failed = replies.outcome(self._endpoint, *inbox.get(self._place))
        if failed:
            self._fail(value)
        else:
            self._set(value)


class AllFuture(CallFuture[R]):
    """The results of all actors of a mesh, in order of rank."""

    __slots__ = ("_errors", "_seen", "_values")

    _lazy = True

    def __init__(self, inbox: Inbox, endpoint: Endpoint[Any, Any]) -> None:
        super().__init__(inbox, endpoint)
        self._seen = 0
        self._values: list[Any] = [None] * inbox.expected
        self._errors: dict[int, BaseException] | None = {} if endpoint._collect else None
        if not endpoint._collect:
            inbox.fail_fast = True

    def _wants(self) -> tuple[Inbox, int] | None:
        # An error of one rank is the outcome, though others still run: no wait goes beyond it.
        return (self._inbox, len(self._values)) if self._seen < len(self._values) else None

    def _advance(self) -> None:
        with settling:
            if not self._state:
                self._read()

    def _read(self) -> None:
        inbox, endpoint, errors = self._inbox, self._endpoint, self._errors
        try:
            seen, arrived = self._seen, inbox.arrived
            while seen < arrived:
                rank, status, data, buffers = inbox.get(seen)
                seen += 1
                if self._lazy and not status and (buffers or len(data) > _LARGE):
                    self._values[rank] = Unread(replies.read, endpoint, data, buffers)
                    continue
                value, failed = replies.outcome(endpoint, rank, status, data, buffers)
                if not failed:
                    self._take(rank, value)
                elif errors is not None:
                    errors[rank] = value
                else:
                    self._fail(replies.with_all_lost(endpoint, value, inbox, seen))
                    return
            self._seen = seen
            if seen == len(self._values):
                self._set(self._whole(errors))
        except Exception as error:  # noqa: BLE001 - the outcome is an error, whichever
            self._fail(error)

    def _take(self, rank: int, value: Any) -> None:
        self._values[rank] = value

    def _whole(self, errors: dict[int, BaseException] | None) -> Any:
        return self._endpoint._handle._gather(self._values, errors or None)

    def _expire(self) -> None:
        with settling:
            if self._state:
                return
            late_ranks = self._inbox.missing()
            error = self._timed_out()
            if self._errors is None:
                self._fail(error)
                return
            self._errors.update(dict.fromkeys(late_ranks, error))
            self._set(self._whole(self._errors))
