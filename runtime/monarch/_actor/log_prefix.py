"""What actors log says whose it is: `[actor=<root>.<app.Trainer trainers{'gpus': 1/2}>] ...`."""

from __future__ import annotations

from _thread import allocate_lock
from sys import modules

from monarch import config
from monarch._actor.cell import cells
from monarch._actor.context import ActorInstance
from monarch._actor.current import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any

__all__ = ["install", "look"]

_lock = allocate_lock()
_done = False


def look() -> None:
    """From now on records have the prefix, if this process has the logging module."""
    if not _done and "logging" in modules:
        install()


def install() -> None:
    """From now on records that are made while an actor's code runs have the prefix."""
    global _done  # noqa: PLW0603 - once in a process
    import logging  # noqa: PLC0415 - heavy, and not every actor logs

    with _lock:
        if _done or not hasattr(logging, "setLogRecordFactory"):  # it is being imported
            return
        _done = True
        make = logging.getLogRecordFactory()

    def make_with_prefix(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        request = current.get()
        if request is not None and config.prefix_python_logs_with_actor:
            _mark(record, f"[actor={ActorInstance(cells.get(request.actor))}] ")
        return record

    logging.setLogRecordFactory(make_with_prefix)


def _mark(record: logging.LogRecord, prefix: str) -> None:
    record.actor_prefix = prefix
    text = str(record.msg)
    if text:  # nothing stays nothing: there, what is said is in other fields
        record.msg = f"{prefix.replace('%', '%%') if record.args else prefix}{text}"
