"""Values to bytes and back: the one module of the runtime that unpickles.

Only peers that passed the handshake get this far, so that what arrives was sent by a process of
the same user. Pickle comes first; cloudpickle takes nine times as long and serves what pickle
cannot: functions by value, and what lives in the script (`__main__`), which the other side has not.
"""

from __future__ import annotations

from _pickle import PickleBuffer
from _pickle import dumps as _dumps
from _pickle import loads as _loads
from sys import modules

from monarch._core import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Buffers = list[Any] | None

__all__ = ["PicklingError", "dumps", "loads", "outline", "pack", "script_bound"]


# From here on `bytes` travel out of band, where pickle would copy them into its stream.
_LARGE = 64 << 10
_SCRIPT = b"_main__"  # in `__main__`, and in `__mp_main__` as a worker of multiprocessing has it


class PicklingError(TypeError):
    """A value that cannot be sent: says which part of it, and why."""


def dumps(
    value: object, root: object = "value", names: tuple[str, ...] | None = None
) -> tuple[bytes, Buffers]:
    """The value as pickle bytes and its out-of-band buffers, None where there are none.

    Args:
        value: what to send.
        root: how the value is called in an error, as `result of counter.value`.
        names: the value is `(args, kwargs)` of a call to `root`, whose parameters have these names.

    Raises:
        PicklingError: a part of the value cannot be pickled; its path from `root` is named.
        Exception: what the code of a part raised instead, with that path as a note.

    """
    buffers: list[Any] = []
    sent: Any = value
    if names is None:
        if type(value) is bytes and len(value) >= _LARGE:
            sent = _Apart(value)
    else:
        args, kwargs = sent
        for part in args:
            if type(part) is bytes and len(part) >= _LARGE:
                sent = _call_apart(args, kwargs)
                break
        else:
            if kwargs:
                sent = _call_apart(args, kwargs)
    try:
        if "torch" in modules:
            from monarch._actor.tensors import dumps as dumps_tensors  # noqa: PLC0415 - few have it

            data = dumps_tensors(sent, buffers.append)
        else:
            data = _dumps(sent, 5, buffer_callback=buffers.append)
    except Exception:  # noqa: BLE001 - cloudpickle may do what pickle cannot
        data = _SCRIPT
    if data.find(_SCRIPT) >= 0:
        return _by_value(value, root, names)
    if buffers:
        return data, _flat(buffers)
    return data, None


def loads(data: Any, buffers: Sequence[Any] | None = None) -> Any:
    """The value that `dumps` made bytes of; buffers are used in place where the type allows it."""
    if buffers is None:
        return _loads(data)
    return _loads(data, buffers=buffers)


def outline(data: Any, buffers: Sequence[Any] | None = None) -> Any:
    """What `loads` gives, as far as it is of Python's plain types; a stand-in for all else.

    Nothing is imported or called for it, so that it can be had where `loads` fails.
    """
    import io  # noqa: PLC0415 - only on the way out
    from _pickle import Unpickler  # noqa: PLC0415 - as above

    class Outliner(Unpickler):
        def find_class(self, _module: str, _name: str) -> type:
            return _Unknown

    return Outliner(io.BytesIO(data), buffers=buffers).load()


class _Unknown:
    """Stands for a value of another than a plain type, and for its class."""

    def __new__(cls, *_args: object, **_kwargs: object) -> _Unknown:  # noqa: PYI034 - no subclasses
        return super().__new__(cls)

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        """Take what the class would."""

    def __call__(self, *_args: object, **_kwargs: object) -> _Unknown:
        return self

    def __setstate__(self, _state: object) -> None:
        """Drop it."""

    def append(self, _item: object) -> None:
        """Drop it."""

    def extend(self, _items: object) -> None:
        """Drop them."""

    def __setitem__(self, _key: object, _value: object) -> None:
        """Drop it."""


class _Apart:
    """Large bytes in the place of which pickle puts a reference to a buffer."""

    __slots__ = ("_held",)

    def __init__(self, held: bytes) -> None:
        self._held = held

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return _whole, (PickleBuffer(self._held),)


def _whole(buffer: Any) -> bytes:
    return buffer if type(buffer) is bytes else to_bytes(buffer)


def _call_apart(args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    return tuple(_apart(part) for part in args), {name: _apart(kwargs[name]) for name in kwargs}


def _apart(part: object) -> object:
    return _Apart(part) if type(part) is bytes and len(part) >= _LARGE else part


def pack(value: object) -> bytes:
    """The value as pickle bytes in one piece, its buffers included.

    Raises:
        PicklingError: a part of the value cannot be pickled.
        Exception: what the code of a part raised instead.

    """
    try:
        data = _dumps(value, 5)
    except Exception:  # noqa: BLE001 - cloudpickle may do it
        data = _SCRIPT
    if _SCRIPT not in data:
        return data
    whole, buffers = _by_value(value, "value", None)
    if not buffers:
        return whole
    from monarch._actor.by_value import dumps_by_value  # noqa: PLC0415 - heavy, rarely needed

    return dumps_by_value(value)


def script_bound(value: object) -> bool:
    """Whether the value refers to something that only the running script has."""
    try:
        return _SCRIPT in _dumps(value, 5)
    except Exception:  # noqa: BLE001 - what pickle cannot do is sent by value
        return True


def _by_value(value: object, root: object, names: tuple[str, ...] | None) -> tuple[bytes, Buffers]:
    from monarch._actor.by_value import dumps_by_value  # noqa: PLC0415 - heavy, rarely needed

    buffers: list[Any] = []
    try:
        data = dumps_by_value(value, buffers.append)
    except Exception as error:  # noqa: BLE001 - reported with its path
        refused = error
    else:
        return data, _flat(buffers) if buffers else None
    raise _refusal(value, root, names, refused)


def _refusal(
    value: object, root: object, names: tuple[str, ...] | None, error: Exception
) -> Exception:
    """What to raise for a value that cannot be pickled, of which `error` was raised.

    What pickle itself raises is told anew, with the path to what it refused. Any other error is of
    the object's own code, and its program may look for it: it stays, and a note has the path.
    """
    from _pickle import PicklingError as Refused  # noqa: PLC0415 - only on the way out

    from monarch._actor.blame import blame, blame_call  # noqa: PLC0415 - only on the way out

    if names is None:
        path, cause = blame(value, str(root), error)
    else:
        path, cause = blame_call(value, str(root), names, error)
    if isinstance(cause, PicklingError):
        return PicklingError(f"{path}: {cause}")
    text = f"{path} cannot be pickled"
    what_to_do = "Send its contents, or make it inside the actor"
    if not isinstance(cause, (TypeError, Refused)):
        cause.add_note(f"{text}. {what_to_do}")
        return cause
    why = f"{type(cause).__name__}: {cause}".rstrip(".")
    found = PicklingError(f"{text}: {why}. {what_to_do}")
    found.__cause__ = cause
    return found


def _flat(buffers: list[Any]) -> list[Any]:
    """The buffers as flat bytes; one that is not contiguous has to be copied."""
    flat = []
    for buffer in buffers:
        try:
            flat.append(buffer.raw())
        except BufferError:
            flat.append(memoryview(memoryview(buffer).tobytes()))
    return flat
