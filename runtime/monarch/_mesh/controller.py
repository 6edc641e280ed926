"""Controllers: named actors of which a program has one, whoever asks for it first."""

# ruff: noqa: SLF001 - futures and meshes
from __future__ import annotations

from _thread import allocate_lock

from monarch._actor.cell import cells
from monarch._actor.current import sender
from monarch._actor.future import PENDING, Future, Pending, settling
from monarch._actor.generic import R
from monarch._actor.pickling import loads, pack
from monarch._actor.process import at_start, process
from monarch._actor.replies import ERROR, OK
from monarch._mesh.here import this_proc
from monarch._mesh.proc_mesh import check_class
from monarch.errors import ActorError, SupervisionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from monarch._actor.actor import Actor
    from monarch._actor.process import Process
    from monarch._core import Inbox
    from monarch._mesh.actor_mesh import ActorMesh

    T = TypeVar("T", bound=Actor)

__all__ = ["get_or_spawn_controller", "is_controller"]

_controllers: dict[str, ActorMesh[Any]] = {}
_actors: set[int] = set()
_spawning = allocate_lock()


def is_controller(actor: int) -> bool:
    """Whether an actor of this process is a controller, of whose failure those learn who ask."""
    with _spawning:
        return actor in _actors


def get_or_spawn_controller(
    name: str,
    Class: type[T],  # noqa: N803 - public name
    *args: Any,
    **kwargs: Any,
) -> Future[T]:
    """The one actor of this name in the program's own process, spawned by the first who asks.

    All processes of one program get the same actor. It lives until the program ends. Its failure is
    nobody's to handle: calls to it fail from then on, and so does asking for it.

    Args:
        name: its name.
        Class: its class.
        args: positional arguments of its constructor, which only the first who asks decides.
        kwargs: keyword arguments of its constructor, as `args`.

    Returns:
        A future of the actor, done once its constructor is through. It raises `ActorError` with a
        `ValueError` where the actor has failed, `ValueError` where it is of another class than the
        one asked for.

    Raises:
        TypeError: `Class` is no actor class, or the arguments do not fit its constructor or cannot
            be pickled.

    """
    check_class(this_proc(), name, Class, args, kwargs)
    here = process()
    inbox = here.engine.open_inbox(True)
    asked = (name, pack((Class, args, kwargs)), Class.__qualname__)
    _climb(here, sender(), (here.id, inbox.id), asked)
    return _Controller(Pending(inbox, 1, _answer, f"controller {name!r}"), name)


class _Controller(Future[R]):
    """First the handle, then word from the actor that it is there."""

    __slots__ = ("_found", "_inner", "_name")

    def __init__(self, asked: Future[Any], name: str) -> None:
        self._state = PENDING
        self._inner = asked
        self._found: Any = None
        self._name = name

    def _wants(self) -> tuple[Inbox, int] | None:
        return self._inner._wants()

    def _receivers(self) -> list[tuple[int, int]]:
        return self._inner._receivers()

    def _advance(self) -> None:
        with settling:
            self._go_on()

    def _go_on(self) -> None:
        while not self._state and self._inner.done():
            try:
                value = self._inner.get()
            except SupervisionError as error:
                text = f"controller {self._name!r} has failed: {error}"
                failed = ValueError(text)
                failed.__cause__ = error
                self._fail(ActorError(failed, text))
            except Exception as error:  # noqa: BLE001 - the outcome is an error, whichever
                self._fail(error)
            else:
                self._follow(value)

    def _follow(self, value: Any) -> None:
        if self._found is not None:
            self._set(self._found)
            return
        self._found = value
        self._inner = value.initialized

    def _title(self) -> str:
        return f"controller {self._name!r}"


def _answer(inbox: Inbox) -> Any:
    _rank, status, data, _buffers = inbox.get(0)
    found = loads(data)
    if status:
        raise found
    return found


def _climb(
    here: Process, actor: int, reply: tuple[int, int], asked: tuple[str, bytes, str]
) -> None:
    """Bring the question before the program, by way of the owners of `actor`."""
    while actor:
        cell = cells.get(actor)
        proc, actor = cell.owner if cell is not None else (here.id, 0)
        if proc != here.id:
            here.tell(proc, "controller", (actor, reply, asked))
            return
    _serve(here, reply, asked)


def _serve(here: Process, reply: tuple[int, int], asked: tuple[str, bytes, str]) -> None:
    """Answer with the controller, which is spawned if there is none of the name."""
    name, packed, wanted = asked
    status = OK
    try:
        mesh = _controllers.get(name)
        if mesh is None:
            cls, args, kwargs = loads(packed)
            with _spawning:
                spawned: Any = this_proc().spawn(name, cls, *args, **kwargs)
                _actors.add(spawned._actor)
            mesh = _controllers.setdefault(name, spawned)
        answer = pack(_of_class(mesh, wanted))
    except Exception as error:  # noqa: BLE001 - who asked gets it
        answer, status = pack(error), ERROR
    here.engine.post(*reply, 0, status, answer, None)


def _of_class(mesh: ActorMesh[Any], wanted: str) -> ActorMesh[Any]:
    found = mesh._class.__qualname__
    if found != wanted:
        raise ValueError(f"{mesh._title()} is a {found}, and a {wanted} was asked for")
    return mesh


def _asked(_peer: int, body: tuple[int, tuple[int, int], tuple[str, bytes, str]]) -> None:
    _climb(process(), *body)


def _listen(here: Process) -> None:
    here.on("controller", _asked)


at_start(_listen)
