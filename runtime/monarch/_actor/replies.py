"""What a reply says: a value, or one of the errors that a call can end with."""

# ruff: noqa: SLF001 - endpoints know their own titles
from __future__ import annotations

from monarch._actor.pickling import PicklingError, loads
from monarch.errors import SupervisionError, call_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from monarch._actor.endpoint import Endpoint
    from monarch._core import Inbox

__all__ = [
    "CANCELLED",
    "ERROR",
    "FAILED",
    "OK",
    "UNDELIVERED",
    "UNSENT",
    "error_from",
    "error_of",
    "outcome",
    "read",
    "unreadable",
    "with_all_lost",
]

OK, ERROR, FAILED, CANCELLED, UNDELIVERED, UNSENT = 0, 1, 2, 3, 4, 5


def outcome(
    endpoint: Endpoint[Any, Any], rank: int, status: int, data: Any, buffers: list[Any] | None
) -> tuple[Any, bool]:
    """The value of a reply and False, or its error and True."""
    if status:
        return error_of(endpoint, rank, status, data, buffers), True
    try:
        return loads(data, buffers), False
    except Exception as error:  # noqa: BLE001 - the outcome is an error, whichever
        return unreadable(endpoint, error), True


def error_of(
    endpoint: Endpoint[Any, Any], rank: int, status: int, data: Any, buffers: list[Any] | None
) -> BaseException:
    """The error that a reply to a call carries, with the rank as the whole mesh counts it."""
    base = endpoint._handle._base_rank(rank)
    return error_from(endpoint._title(), str(endpoint), base, status, data, buffers)


def with_all_lost(
    endpoint: Endpoint[Any, Any], error: BaseException, inbox: Inbox, place: int
) -> BaseException:
    """The error of a call to many: where a process is lost, it names all ranks lost by now.

    `place` is that of the first reply which has not been looked at.
    """
    from monarch.errors import ActorCrashError  # noqa: PLC0415 - only on the way out

    if not isinstance(error, ActorCrashError) or error.failure is None:
        return error
    ranks = {*error.ranks, *endpoint._handle._lost()}
    delivered = error.delivered
    for later in range(place, inbox.arrived):
        rank, status, data, buffers = inbox.get(later)
        other = error_of(endpoint, rank, status, data, buffers) if status else None
        if isinstance(other, ActorCrashError):
            ranks.update(other.ranks)
            delivered = delivered if other.delivered is False else None
    if ranks == set(error.ranks):
        return error
    whole = call_failed(error.failure, tuple(sorted(ranks)), endpoint._title())
    whole.delivered = delivered
    return whole


def error_from(
    title: str, name: str, rank: int, status: int, data: Any, buffers: list[Any] | None
) -> BaseException:
    """The error that a reply with a status other than OK carries; `title` is what was asked."""
    if status == ERROR:
        from monarch._actor.remote import load_error  # noqa: PLC0415 - good calls do without

        return load_error(data, buffers, title, rank)
    if status in {FAILED, UNSENT}:
        failure = loads(data, buffers) if len(data) else None
        if isinstance(failure, BaseException):
            return failure
        if failure is not None:
            error = call_failed(failure, (rank,), title)
            error.delivered = False if status == UNSENT else None
            return error
        text = f"the process of rank {rank} is gone"
    elif status == UNDELIVERED:
        text = (
            f"not delivered to rank {rank}: there is no such actor in its process; it was stopped, "
            "or never made"
        )
    else:
        text = f"rank {rank} dropped the call, because its caller had cancelled it"
    error = SupervisionError(f"{title}: {text}", None, (rank,), name)
    error.delivered = False if status in {UNSENT, UNDELIVERED} else None
    return error


def read(endpoint: Endpoint[Any, Any], data: Any, buffers: list[Any] | None) -> Any:
    """The value of a good reply.

    Raises:
        PicklingError: it cannot be unpickled here.

    """
    try:
        return loads(data, buffers)
    except Exception as error:
        raise unreadable(endpoint, error) from error


def unreadable(endpoint: Endpoint[Any, Any], error: Exception) -> Exception:
    """A result that came, and cannot be unpickled here."""
    if isinstance(error, (ImportError, AttributeError)):
        import sys  # noqa: PLC0415 - only on the way out

        text = f"{error}; searched: {', '.join(sys.path)}"
    else:
        text = str(error)
    found = PicklingError(
        f"result of {endpoint._title()} cannot be unpickled here: {type(error).__name__}: {text}"
    )
    found.__cause__ = error
    return found
