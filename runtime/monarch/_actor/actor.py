"""`Actor`: the base class of what runs in a proc and answers calls."""

from __future__ import annotations

from monarch._actor.decorators import method_of
from monarch._actor.signature import Method, is_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping
    from typing import Any

    from monarch._actor.future import Future
    from monarch._actor.undelivered import UndeliverableMessage
    from monarch._shape import MeshTrait

    class _Spawned(MeshTrait):
        """What `ProcMesh.spawn` gives is typed as the actor's class: so this is what it has."""

        @property
        def initialized(self) -> Future[bool]: ...
        def stop(self, reason: str = ...) -> Future[None]: ...

else:
    _Spawned = object

__all__ = ["Actor", "Here", "endpoints_of", "needs_loop", "plain_of", "reserve", "reserved"]

_reserved = {
    "activate",
    "extent",
    "flatten",
    "initialized",
    "region",
    "rename",
    "size",
    "sizes",
    "slice",
    "split",
    "stop",
}


def reserve(*names: str) -> None:
    """Keep names for the mesh itself: no endpoint may have them."""
    _reserved.update(names)


def reserved() -> list[str]:
    """The names that no endpoint may have."""
    return sorted(_reserved)


class Actor(_Spawned):
    """Base of the classes that `ProcMesh.spawn` makes actors of.

    Each actor handles one message at a time, those of one sender in the order in which they were
    sent. It may define:

    - `__supervise__(failure) -> bool`: a mesh that it spawned failed; a true value says that the
      failure is dealt with, a false one hands it to the owner of this actor;
    - `__cleanup__(exception | None)`: called once when it ends, with what made it fail; it is given
      up after the setting `cleanup_timeout`;
    - `_handle_undeliverable_message(message) -> bool`: a message that it sent came back.

    On an event loop (a class with any `async` method) these may be `async` as well; the first and
    the last run, one after the other, also while an endpoint waits.

    Raises:
        ValueError: (when the class is defined) an endpoint has a name that every mesh uses itself.

    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in cls.__dict__.items():
            method = method_of(value)
            if method is None:
                continue
            if name in _reserved or name.startswith("__"):
                raise ValueError(
                    f"{cls.__qualname__}.{name}: a mesh has something of its own under this name, "
                    f"so no endpoint can be called {name!r}. Reserved names: "
                    f"{', '.join(sorted(_reserved))}, and all that begin with two underscores"
                )

    @property
    def logger(self) -> logging.Logger:
        """The logger named as the actor's class; it lets all levels through to the handlers."""
        import logging  # noqa: PLC0415 - heavy, and not every actor logs

        from monarch._actor.log_prefix import look  # noqa: PLC0415 - it is above this module

        look()
        logger = logging.getLogger(type(self).__name__)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.DEBUG)
        return logger

    def _handle_undeliverable_message(self, message: UndeliverableMessage) -> bool:  # noqa: ARG002 - to be overridden
        """Deal with a message of this actor that asks for no answer and was not delivered.

        May be `async`. Where it gives False, as here, the actor fails, unless who the message was
        for has died or was stopped (`message.died`): of that its own owner is told.

        Args:
            message: what it was: `.dest()`, `.error_msg()`, `.endpoint`, `.died`.

        Returns:
            Whether it is dealt with.

        """
        return False


class Here:
    """A class in the place of which pickle puts where this process itself finds it again.

    A class of the script goes by value, which takes a hundred times as long as all the rest of
    spawning an actor.
    """

    __slots__ = ("_cls",)

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __reduce__(self) -> tuple[Any, ...]:
        _here[id(self._cls)] = self._cls
        return _found_here, (id(self._cls),)


_here: dict[int, type] = {}


def _found_here(key: int) -> type:
    return _here[key]


def endpoints_of(cls: type) -> Mapping[str, Method]:
    """The endpoints of a class and its bases, by name; looked for once."""
    return _facts(cls)[0]


def needs_loop(cls: type) -> bool:
    """Whether actors of the class live on the event loop: any method of theirs is `async`."""
    return _facts(cls)[1]


def plain_of(cls: type) -> Mapping[str, Any]:
    """The functions of the endpoints that can be called without more ado, by name."""
    return _facts(cls)[2]


_known: dict[type, tuple[Mapping[str, Method], bool, Mapping[str, Any]]] = {}


def _facts(cls: type) -> tuple[Mapping[str, Method], bool, Mapping[str, Any]]:
    facts = _known.get(cls)
    if facts is None:
        found: dict[str, Method] = {}
        loop = False
        for base in reversed(cls.__mro__):
            if base in {Actor, object}:
                continue
            for name, value in base.__dict__.items():
                loop = loop or is_async(value)
                method = method_of(value)
                if method is not None:
                    found[name] = method
                else:
                    found.pop(name, None)
        plain: dict[str, Any] = {}
        if not loop:
            plain = {name: getattr(cls, name) for name in found if not found[name].explicit}
        facts = _known[cls] = (found, loop, plain)
    return facts
