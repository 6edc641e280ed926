"""`Future`: what a call gives at once, and where its value or error comes out."""

# ruff: noqa: SLF001 - endpoints, handles and futures know each other
from __future__ import annotations

from _thread import RLock, allocate_lock, get_ident
from math import inf
from time import monotonic

from monarch._actor.generic import Generic, R, R_co
from monarch._actor.waiting import arrive, block
from monarch.errors import StoppedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator, Iterable
    from typing import Any, NoReturn

    from monarch._core import Inbox

__all__ = ["Combined", "Done", "Future", "Pending", "Then", "seconds"]

PENDING, VALUE, ERROR = 0, 1, 2
_LONGEST_S = 1e8

settling = RLock()
"""Held while a future becomes what it is, where doing that twice would show."""

ending: list[int] = []
"""The thread in which the interpreter exits, once it does."""


class Future(Generic[R_co]):
    """A value that is on its way. What was called runs whether it is waited for or not.

    `get()` blocks until it is there; `await` does so inside a coroutine. Both may be repeated, and
    both raise what the call raised. A future cannot be sent: send its value.

    Raises:
        TypeError: (on construction) futures come from calls, not from a constructor.

    """

    __slots__ = ("__weakref__", "_error", "_state", "_value")

    _error: BaseException
    _state: int
    _value: R_co
    _strict = True  # its time is over also for who gives more

    def __init__(self) -> None:
        raise TypeError("a Future comes from a call: write actor.endpoint.call_one(...)")

    def get(self, timeout: float | None = None) -> R_co:
        """The value, waited for at most `timeout` seconds (None: for as long as it takes).

        Raises:
            TimeoutError: it was not there in time. It may be waited for again.
            ValueError: the timeout is negative or no number.
            RuntimeError: called in an async endpoint, which it would block: write `await` there.
            ActorError: the endpoint raised; `.exception` is what it raised.
            SupervisionError: what was called has failed or was stopped.

        """
        if not self._state:
            self._complete(timeout)
        elif timeout is not None:
            seconds(timeout)  # one that is none shows each time
        if self._state == VALUE:
            return self._value
        raise self._error.with_traceback(None)

    def result(self, timeout: float | None = None) -> R_co:
        """As `get`."""
        return self.get(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What `get` would raise, or None where there is a value; waits as `get` does.

        Raises:
            TimeoutError: neither was there in time.
            ValueError: the timeout is negative or no number.

        """
        if not self._state:
            self._complete(timeout)
        elif timeout is not None:
            seconds(timeout)
        return self._error if self._state == ERROR else None

    def done(self) -> bool:
        """Whether `get` would return or raise at once."""
        if not self._state:
            self._advance()
        return bool(self._state)

    def __await__(self) -> Generator[Any, None, R_co]:
        if not self._state:
            yield from self._arrive()
        if self._state == VALUE:
            return self._value
        raise self._error.with_traceback(None)

    def as_asyncio(self) -> asyncio.Future[R_co]:
        """An asyncio future of the running loop with the same outcome.

        Raises:
            RuntimeError: no event loop runs in this thread.

        """
        import asyncio  # noqa: PLC0415 - a running loop has it loaded

        return asyncio.ensure_future(self._coroutine())

    async def _coroutine(self) -> R_co:
        return await self

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError(
            "a Future cannot be sent: send its value, as in b.add.call_one(a.get.call_one().get()) "
            "or, in a coroutine, b.add.call_one(await a.get.call_one())"
        )

    def __repr__(self) -> str:
        state = ("pending", "done", "failed")[self._state]
        return f"<Future of {self._title()}: {state}>"

    # What kinds of futures give.

    def _wants(self) -> tuple[Inbox, int] | None:
        """The inbox and how many arrivals in all let it go on; None: it can go on now."""
        raise NotImplementedError

    def _advance(self) -> None:
        """Take what has arrived; without waiting, and in any thread."""
        raise NotImplementedError

    def _title(self) -> str:
        """What is waited for, for messages."""
        return "a value"

    def _late(self, waited: float) -> str:
        """What to say when it took longer than `waited` seconds."""
        return f"{self._title()}: nothing came within {waited:g} s"

    def _due(self) -> float | None:
        """When it has to be there, on the monotonic clock."""
        return None

    def _expire(self) -> None:
        """Its time is over; settles it."""

    def _receivers(self) -> list[tuple[int, int]]:
        """The processes and actors whose answers are waited for, as far as it is known."""
        return []

    # Waiting.

    def _complete(self, timeout: float | None) -> None:
        try:
            block(self, None if timeout is None else seconds(timeout))
        except StoppedError:
            if not ending:
                raise
            park()

    def _arrive(self) -> Generator[Any, None, None]:
        return arrive(self)

    def _set(self, value: Any) -> None:
        self._value = value
        self._state = VALUE

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self._state = ERROR


class Done(Future[R]):
    """A future whose outcome is known."""

    __slots__ = ()

    def __init__(self, value: R | None = None, error: BaseException | None = None) -> None:
        if error is not None:
            self._fail(error)
        else:
            self._set(value)

    def _wants(self) -> tuple[Inbox, int] | None:
        return None


class Pending(Future[R]):
    """A future of one inbox: `settle(inbox)` gives the value once `count` replies are there.

    With a `limit`, its error is a `TimeoutError` if they are not there in so many seconds, where
    whoever waits gives no time of his own.
    """

    _strict = False

    __slots__ = ("_count", "_end", "_inbox", "_limit", "_settle", "_what")

    def __init__(
        self,
        inbox: Inbox,
        count: int,
        settle: Callable[[Inbox], R],
        what: str = "a reply",
        limit: float | None = None,
    ) -> None:
        self._limit = limit
        self._end = None if limit is None else monotonic() + limit
        self._state = PENDING
        self._inbox: Inbox | None = inbox
        self._count = count
        self._settle: Callable[[Inbox], R] | None = settle
        self._what = what

    def _wants(self) -> tuple[Inbox, int] | None:
        inbox = self._inbox
        return None if inbox is None else (inbox, self._count)

    def _advance(self) -> None:
        with settling:
            inbox, settle = self._inbox, self._settle
            if inbox is None or settle is None or inbox.arrived < self._count:
                return
            try:
                self._set(settle(inbox))
            except Exception as error:  # noqa: BLE001 - the outcome is an error, whichever
                self._fail(error)
            self._inbox = self._settle = None

    def _due(self) -> float | None:
        return self._end

    def _expire(self) -> None:
        with settling:
            if not self._state:
                self._fail(TimeoutError(self._late(self._limit or 0.0)))
                self._inbox = self._settle = None

    def _title(self) -> str:
        return self._what

    def _late(self, waited: float) -> str:
        inbox = self._inbox
        missing = inbox.missing() if inbox is not None else []
        return late(self._what, waited, missing)


class Then(Future[R]):
    """What a function makes of another future's value, or of its error."""

    __slots__ = ("_inner", "_make", "_rescue")

    def __init__(
        self,
        inner: Future[Any],
        make: Callable[[Any], R],
        rescue: Callable[[BaseException], R] | None = None,
    ) -> None:
        self._state = PENDING
        self._inner = inner
        self._make = make
        self._rescue = rescue

    def _wants(self) -> tuple[Inbox, int] | None:
        return self._inner._wants()

    def _advance(self) -> None:
        inner = self._inner
        with settling:
            if self._state or not inner.done():
                return
            try:
                error = inner.exception()
                if error is None:
                    self._set(self._make(inner.get()))
                elif self._rescue is not None:
                    self._set(self._rescue(error))
                else:
                    self._fail(error)
            except Exception as raised:  # noqa: BLE001 - the outcome is an error, whichever
                self._fail(raised)

    def _title(self) -> str:
        return self._inner._title()

    def _late(self, waited: float) -> str:
        return self._inner._late(waited)

    def _due(self) -> float | None:
        return self._inner._due()

    def _receivers(self) -> list[tuple[int, int]]:
        return self._inner._receivers()

    def _expire(self) -> None:
        self._inner._expire()
        self._advance()


class Combined(Future[R]):
    """All of several futures: `make(values)` once each is there; the first error is its error.

    `title` says what they come to, else it is what the first that is left says.
    """

    __slots__ = ("_called", "_left", "_make", "_parts")

    def __init__(
        self, parts: Iterable[Future[Any]], make: Callable[[list[Any]], R], title: str = ""
    ) -> None:
        self._called = title
        self._state = PENDING
        self._parts = list(parts)
        self._left = list(self._parts)
        self._make = make

    def _wants(self) -> tuple[Inbox, int] | None:
        return self._left[0]._wants() if self._left else None

    def _advance(self) -> None:
        with settling:
            self._left = [part for part in self._left if not part.done()]
            if self._state or self._left:
                return
            try:
                self._set(self._make([part.get() for part in self._parts]))
            except Exception as error:  # noqa: BLE001 - the outcome is an error, whichever
                self._fail(error)

    def _receivers(self) -> list[tuple[int, int]]:
        return [found for part in self._left for found in part._receivers()]

    def _title(self) -> str:
        return self._called or (self._left[0]._title() if self._left else "several calls")

    def _late(self, waited: float) -> str:
        text = self._left[0]._late(waited) if self._left else super()._late(waited)
        return f"{self._called}: {text}" if self._called and self._left else text


def park() -> None:
    """Stay here: the interpreter exits, and what a daemon thread waits for will not come."""
    if get_ident() not in ending:
        lock = allocate_lock()
        lock.acquire()
        lock.acquire()
    raise StoppedError("the runtime of this process has been shut down")


def seconds(timeout: float) -> float | None:
    """A time to wait that any clock can; None for what is longer than that, which is for ever.

    Raises:
        TypeError: it is no number.
        ValueError: it is negative or "not a number".

    """
    wanted = f"a timeout is a number of seconds, at least 0, not {timeout!r}"
    if isinstance(timeout, (str, bytes)):
        raise TypeError(wanted)
    try:
        found = float(timeout)
    except TypeError:
        raise TypeError(wanted) from None
    except OverflowError:  # an integer beyond all floats
        found = inf if timeout > 0 else -inf
    if not found >= 0:
        raise ValueError(wanted)
    return found if found <= _LONGEST_S else None


def late(what: str, waited: float, missing: list[int]) -> str:
    """What a `TimeoutError` says: what was waited for, how long, and who had not answered."""
    if not missing:
        return f"{what}: no answer within {waited:g} s"
    if len(missing) == 1:
        who = f"rank {missing[0]}"
    else:
        shown = ", ".join(map(str, missing[:16]))
        more = f" and {len(missing) - 16} more" if len(missing) > 16 else ""
        who = f"ranks {shown}{more}"
    return f"{what}: no answer within {waited:g} s from {who}"
