"""What this thread, or this task, is handling."""

from __future__ import annotations

from _contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._core import Request

__all__ = ["current", "sender"]

current: ContextVar[Request | None] = ContextVar("monarch_request", default=None)
"""The request being handled; None outside an endpoint."""


def sender() -> int:
    """The actor that sends from here: 0 is the program itself."""
    request = current.get()
    return 0 if request is None else request.actor
