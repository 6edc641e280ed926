"""`ProcMesh`: processes that actors are spawned in."""

# ruff: noqa: SLF001 - meshes of the same package
from __future__ import annotations

from monarch._actor.actor import Actor, Here, needs_loop
from monarch._actor.cell import cells
from monarch._actor.current import sender
from monarch._actor.future import Combined, Done, Then
from monarch._actor.pickling import dumps
from monarch._actor.process import PeerGoneError, at_start, process
from monarch._actor.signature import Method
from monarch._failure import MeshFailure
from monarch._mesh import placements
from monarch._mesh.actor_mesh import ActorMesh
from monarch._mesh.ids import new_id
from monarch._mesh.placement import Placement, Spawned
from monarch._restart import Restart
from monarch._shape import MeshTrait, Shape, ShapedMesh, Slice
from monarch.errors import SupervisionError, call_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn, Self, TypeVar

    from monarch._actor.future import Future
    from monarch._actor.process import Process
    from monarch._mesh.host_mesh import HostMesh

    T = TypeVar("T", bound=Actor)

__all__ = ["ProcMesh"]

_CREATE, _LOOP = 1, 8
_constructors: dict[type, Method] = {}


class ProcMesh(ShapedMesh):
    """Processes with named dimensions, from `HostMesh.spawn_procs` or `this_proc()`.

    Slices share the processes. It can be sent to any actor, which spawns in the same processes.
    Who spawned it owns it: that actor, or the program, is told when one of the processes is lost,
    and the processes end with it. As an async context manager it stops the processes at the end.
    """

    def __init__(self, procs: Placement, shape: Shape, hosts: HostMesh | None = None) -> None:
        self._procs = procs
        self._shape = shape
        self._hosts = hosts

    def spawn(
        self,
        name: str,
        Class: type[T],  # noqa: N803 - public name
        *args: Any,
        **kwargs: Any,
    ) -> T:
        """Spawn one actor in each process; returns at once.

        `Class(*args, **kwargs)` runs in each process before the first call of an endpoint there.
        Where it raises, that actor has failed: its calls raise `SupervisionError`, and who spawned
        it is told.

        Args:
            name: how messages call the actors.
            Class: their class.
            args: positional arguments of the constructor.
            kwargs: keyword arguments of the constructor. `restart` is not among them where it is a
                `monarch.supervision.Restart`: it then says how actors that fail start again by
                themselves, in the same processes; without it, who spawned them is told.

        Returns:
            The `ActorMesh`, typed as the class so that editors know its endpoints.

        Raises:
            TypeError: `Class` is no actor class, or the arguments do not fit its constructor or
                cannot be pickled.
            ValueError: the name is empty.
            SupervisionError: the processes were stopped.

        """
        procs = self._procs
        if procs.stopped:
            raise self._stopped(f"spawn({name!r}, {Class.__name__})")
        restart = kwargs.pop("restart") if isinstance(kwargs.get("restart"), Restart) else None
        check_class(self, name, Class, args, kwargs)
        place = process()
        shape = self._shape
        mesh: ActorMesh[Any] = ActorMesh(Class, name, new_id(), procs, shape)
        route = mesh._route()
        owner = sender()
        creator = cells[owner].line if owner else ()
        ranks = None if shape == procs.whole else tuple(shape.ranks())
        info = (name, procs.id, name, ranks, (place.id, owner), creator)
        title = f"{Class.__qualname__}(...)"
        alone = procs.request is None and procs.owner[0] == place.id  # this process itself
        data, buffers = dumps((Here(Class) if alone else Class, args, kwargs, info), title)
        flags = _CREATE | _LOOP if needs_loop(Class) else _CREATE
        create = (data, buffers, owner, route.extent, flags)
        if not alone or restart is not None:
            procs.spawned[mesh._actor] = Spawned(mesh._actor, name, ranks, create, restart)
        place.engine.cast(route.targets, "", *create)
        for spares in () if procs.request is None else procs.request.spares:
            spares.warm(Class)
        if owner:
            cells[owner].at_end(lambda: _outlived(mesh))
        return mesh  # type: ignore[return-value]  # typed as the class

    @property
    def initialized(self) -> Future[bool]:
        """True once all processes have started.

        Its error is a `SupervisionError` where one has not.
        """
        procs = self._procs
        if procs.stopped:
            raise self._stopped("initialized")
        return begun(procs, self._ranks())

    def stop(self, reason: str = "stopped by client") -> Future[None]:
        """Stop the processes: their actors run `__cleanup__`, then all that they started ends.

        Processes that are lost already are passed over; one that does not end in time is killed.
        Stopping twice is no error.

        Args:
            reason: what later calls are told.

        Raises:
            RuntimeError: this is a slice, or was sent here by its owner.

        """
        procs = self._procs
        self._check_owned("stop()")
        if procs.stopped:
            return Done(None)
        if procs.request is None:
            raise RuntimeError(self._said("stop()", "a process does not stop itself"))
        from monarch._mesh.ends import stop_procs  # noqa: PLC0415 - who spawned procs has it loaded

        return stop_procs(procs, reason, self._title())

    async def logging_option(
        self,
        stream_to_client: bool = False,
        aggregate_window_sec: float | None = None,
        level: int = 20,
    ) -> None:
        """Say where the lines go that the processes print, and what their loggers let through.

        Lines go to the output of the process that started theirs, unless they are asked for here.

        Args:
            stream_to_client: bring them to this program's `sys.stdout` and `sys.stderr`.
            aggregate_window_sec: then collect them for so many seconds, and write those of several
                ranks that differ in numbers only as one, with their count.
            level: of the root logger in each process, as `logging` counts; 20 is INFO.

        Raises:
            ValueError: a window without `stream_to_client`, or one that is no positive time.
            RuntimeError: this mesh was sent here by its owner, or is this process itself.

        """
        from monarch._proc import logs  # noqa: PLC0415 - few programs ask for it

        logs.check_option(
            stream_to_client=stream_to_client, aggregate_window_sec=aggregate_window_sec
        )
        procs = self._procs
        self._check_owned("logging_option()")
        request = procs.request
        if request is None:
            raise RuntimeError(
                self._said("logging_option()", "a process prints to its own output already")
            )
        logs.set_option(
            [
                (procs.refs[rank].id, rank, procs.name, request.host(rank).proc)
                for rank in self._ranks()
            ],
            stream_to_client=stream_to_client,
            aggregate_window_sec=aggregate_window_sec,
            level=level,
        )

    def respawn(self, ranks: Sequence[int] | int | None = None) -> Future[None]:
        """Put new processes in the place of lost ranks, and make their actors again.

        Actors are made by their constructors, with the arguments that they were spawned with. All
        handles of the mesh reach the new ones; the other ranks go on undisturbed.

        Args:
            ranks: ranks of this mesh; None for all that are lost.

        Raises:
            RuntimeError: this mesh was sent here by its owner.
            IndexError: there is no such rank.
            TypeError: a rank is no integer.

        """
        if isinstance(ranks, int):
            ranks = [ranks]
        if ranks is not None:
            asked = f"respawn({ranks!r})"
            try:
                base = [self._shape.ndslice.get(rank) for rank in ranks]
            except IndexError as error:
                raise IndexError(self._said(asked, error)) from None
            except TypeError:
                raise TypeError(
                    self._said(asked, "a rank is an integer, ranks a list of them")
                ) from None
        else:
            base = [rank for rank in self._ranks() if rank in self._procs.lost]
        if self._procs.owner[0] != process().id:
            raise RuntimeError(self._said("respawn()", "only who spawned the mesh can"))
        if self._procs.stopped:
            raise self._stopped("respawn()")
        from monarch._mesh.respawn import respawn  # noqa: PLC0415 - rarely needed

        return respawn(self._procs, base)

    @property
    def host_mesh(self) -> HostMesh:
        """The hosts of the processes.

        Raises:
            NotImplementedError: there is more than one process; slice the mesh down to one.

        """
        if len(self) != 1:
            raise NotImplementedError(
                self._said("host_mesh", "it is there for a mesh of one process; slice it to one")
            )
        from monarch._mesh.host_mesh import host_of  # noqa: PLC0415 - it knows this module

        return host_of(self)

    def to_table(self) -> str:
        """The processes as a text table: rank, indices, host, pid and incarnation."""
        lines = [("rank", *self._labels, "host", "proc", "incarnation")]
        extent = self.extent
        for rank, base in enumerate(self._ranks()):
            ref = self._procs.refs[base]
            place = dict(zip(extent, self._indices(rank), strict=True))
            places = [str(place[label]) for label in extent]
            last = (ref.host or "?", f"{ref.id:016x}", str(ref.incarnation))
            lines.append((str(rank), *places, *last))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join(rows)

    async def __aenter__(self) -> Self:
        if self._procs.stopped:
            raise self._stopped("async with")
        return self

    async def __aexit__(self, *_error: object) -> None:
        if not self._procs.stopped:
            await self.stop()

    def _indices(self, rank: int) -> list[int]:
        return Slice.new_row_major(self._ndslice.sizes).coordinates(rank)

    def _ranks(self) -> list[int]:
        return self._shape.ranks()

    def _stopped(self, asked: str) -> SupervisionError:
        return SupervisionError(self._said(asked, f"it was stopped: {self._procs.stopped}"))

    def _check_owned(self, asked: str) -> None:
        if self._procs.owner[0] != process().id:
            raise RuntimeError(self._said(asked, "this mesh belongs to whom it was sent by"))
        if len(self) != self._procs.extent.nelements:
            whole = f"this is a part of {self._procs.extent}; stop the whole mesh"
            raise RuntimeError(self._said(asked, whole))

    def _title(self) -> str:
        return f"proc mesh {self._procs.name!r} {self.extent}"

    def _new_with_shape(self, shape: Shape) -> Self:
        return self if shape == self._shape else type(self)(self._procs, shape, self._hosts)

    def __str__(self) -> str:
        return f"<{self._title()}>"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProcMesh):
            return NotImplemented
        return self._procs is other._procs and self._shape == other._shape

    def __hash__(self) -> int:
        return hash((self._procs.id, self._shape))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._procs.told(self._shape), self._shape, self._hosts)


def _rebuild(told: tuple[Any, ...], shape: Shape, hosts: HostMesh | None) -> ProcMesh:
    return ProcMesh(placements.placement(*told), shape, hosts)


def begun(procs: Placement, ranks: Sequence[int]) -> Future[bool]:
    """A future of True, once the processes of these ranks of a mesh are there."""
    here = process()
    title = f"proc mesh {procs.name!r}"

    def lost(rank: int) -> Callable[[BaseException], NoReturn]:
        def rescue(error: BaseException) -> NoReturn:
            if not isinstance(error, PeerGoneError):
                raise error
            if isinstance(error.fate, MeshFailure):
                raise call_failed(error.fate, (rank,), title)
            raise SupervisionError(f"{title}: rank {rank} is lost: {error.fate}", None, (rank,))

        return rescue

    asked = [
        Then(here.asking(proc, "here", None), bool, lost(rank))
        for rank, proc in zip(ranks, procs.reach(ranks), strict=True)
    ]
    return Combined(asked, all)


def _listen(here: Process) -> None:
    here.on("here", lambda _peer, _body: True)


at_start(_listen)


def _outlived(mesh: ActorMesh[Any]) -> None:
    """Who spawned these actors has ended, and so do they."""
    if not mesh._stopped and not mesh._procs.stopped:
        mesh.stop("the actor that spawned it has ended")


def check_class(
    procs: MeshTrait, name: str, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Nothing, if an actor of this class can be made with these arguments.

    Raises:
        TypeError: `cls` is no actor class, `name` no string, or the arguments do not fit.
        ValueError: `name` is empty.

    """
    if not isinstance(name, str) or not name:
        wrong = ValueError if name == "" else TypeError
        raise wrong(procs._said(f"spawn({name!r})", "the first argument is the actors' name"))
    try:
        constructor = _constructors[cls]
    except (KeyError, TypeError):
        if not isinstance(cls, type) or not issubclass(cls, Actor):
            wanted = "the second argument is a class that derives from Actor"
            raise TypeError(procs._said(f"spawn({name!r}, {cls!r})", wanted)) from None
        function: Any = cls.__init__
        constructor = Method(_plain if function is object.__init__ else function, cls.__qualname__)
        _constructors[cls] = constructor
    constructor.check(args, kwargs)


def _plain(self: object) -> None:
    """The signature of a class without constructor."""
