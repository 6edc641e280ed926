"""Exceptions across processes: type, text and traceback always arrive, the exception if it can."""

from __future__ import annotations

from monarch._actor.pickling import dumps, loads, pack
from monarch._failure import Cause
from monarch.errors import ActorError, RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

__all__ = [
    "causes_of",
    "describe",
    "dump_error",
    "format_error",
    "load_error",
    "shorten",
    "user_frames",
]

_OURS = __file__.rpartition("_actor")[0]
_PICKLER = "/cloudpickle/"
_DEPTH = 16
# What Python writes between the tracebacks of a chain, and what reads logs looks for.
_CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
_MEANWHILE = "\nDuring handling of the above exception, another exception occurred:\n\n"
_LONGEST_TEXT, _LONGEST_TRACEBACK = 16 << 10, 64 << 10  # characters


def dump_error(error: BaseException, *, itself: bool = False) -> tuple[bytes, list[Any] | None]:
    """An exception as bytes; one that cannot be pickled goes as its type, text and traceback.

    With `itself` it is what the other side gets to raise, without an `ActorError` around it.
    """
    name, text = describe(error)
    formatted = format_error(error)
    reason = ""
    try:
        whole = pack(error)
        loads(whole)  # many exceptions pickle, and then cannot be made again
    except Exception as refused:  # noqa: BLE001 - whatever it is, the rest is sent
        whole, reason = b"", ": ".join(describe(refused))
    return dumps((whole, name, text, formatted, reason, itself))


def load_error(data: Any, buffers: list[Any] | None, title: str, rank: int) -> BaseException:
    """The error that a caller gets for what `dump_error` sent."""
    whole, name, text, formatted, reason, itself = loads(data, buffers)
    exception: BaseException
    try:
        exception = loads(whole) if whole else RemoteError(name, text, reason)
    except Exception as refused:  # noqa: BLE001 - whatever it is, the rest is there
        exception = RemoteError(name, text, ": ".join(describe(refused)))
    if itself:
        return exception
    where = f"{title}: rank {rank}" if rank >= 0 else title
    return ActorError(exception, f"{where} raised {name}: {text}".rstrip(": "), formatted)


def describe(error: BaseException) -> tuple[str, str]:
    """An exception's type with its module, and its text, also where its `__str__` fails.

    A text that is very long is shortened, and says so.
    """
    kind = type(error)
    module = kind.__module__
    short = module in {"builtins", "__main__", "__mp_main__"}
    name = kind.__qualname__ if short else f"{module}.{kind.__qualname__}"
    try:
        text = str(error)
    except Exception as failed:  # noqa: BLE001 - the exception is reported, not its __str__
        text = f"<its text failed with {type(failed).__name__}>"
    return name, shorten(text)


def shorten(text: str, longest: int = _LONGEST_TEXT) -> str:
    """The beginning and the end of a text too long to be read, and how much was left out."""
    left = len(text) - longest
    if left <= 0:
        return text
    half = longest // 2
    return f"{text[:half]}\n[... {left} characters left out here ...]\n{text[-half:]}"


def format_error(error: BaseException) -> str:
    """The traceback as Python prints it, the root cause first, of the program's own frames."""
    import traceback  # noqa: PLC0415 - heavy, and good calls do without

    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(seen) < _DEPTH:
        seen.add(id(current))
        frames = user_frames(current.__traceback__)
        text = "Traceback (most recent call last):\n" if frames else ""
        text += "".join(traceback.format_list(frames))
        text += "".join(_last_lines(traceback, current))
        parts.append(text)
        if current.__cause__ is not None:
            parts.append(_CAUSED)
            current = current.__cause__
        elif current.__context__ is not None and not current.__suppress_context__:
            parts.append(_MEANWHILE)
            current = current.__context__
        else:
            current = None
    if parts[-1] in {_CAUSED, _MEANWHILE}:
        parts.pop()
    parts.reverse()
    return shorten("".join(parts), _LONGEST_TRACEBACK)


def user_frames(tb: TracebackType | None) -> Any:
    """The frames of a traceback that are not the runtime's or its pickler's; there may be none."""
    import traceback  # noqa: PLC0415 - heavy, and good calls do without

    frames = traceback.extract_tb(tb)
    return [
        frame
        for frame in frames
        if not frame.filename.startswith(_OURS) and _PICKLER not in frame.filename
    ]


def _last_lines(traceback: Any, error: BaseException) -> list[str]:
    lines: list[str]
    try:
        lines = [shorten(line) for line in traceback.format_exception_only(type(error), error)]
    except Exception:  # noqa: BLE001 - a __str__ may fail; its type is known
        name, text = describe(error)
        lines = [f"{name}: {text}\n"]
    nested = getattr(error, "exceptions", None)
    if isinstance(nested, (list, tuple)):
        for part in nested:
            if isinstance(part, BaseException):
                lines += [f"  | {line}\n" for line in format_error(part).splitlines()]
    return lines


def causes_of(error: BaseException) -> tuple[Cause, ...]:
    """The chain of exceptions as a failure record has it: the last one is the root."""
    import traceback  # noqa: PLC0415 - heavy, and good calls do without

    found: list[Cause] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(seen) < _DEPTH:
        seen.add(id(current))
        name, text = describe(current)
        frames = "".join(traceback.format_list(user_frames(current.__traceback__)))
        found.append(Cause(name, text, shorten(frames, _LONGEST_TRACEBACK)))
        context = None if current.__suppress_context__ else current.__context__
        current = current.__cause__ or context
    return tuple(found)
