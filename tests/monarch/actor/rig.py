"""Actors without the mesh package: in this process, or in a forked child over a socket pair."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from monarch._actor.actor import needs_loop
from monarch._actor.current import sender
from monarch._actor.dispatch import work
from monarch._actor.future import Pending
from monarch._actor.handle import ActorHandle, Route
from monarch._actor.lifecycle import CREATE, LOOP, STOP
from monarch._actor.pickling import dumps, loads
from monarch._actor.process import process, start_proc
from monarch._shape import Extent, encode_extent


def new_id() -> int:
    return int.from_bytes(os.urandom(8), "little") | 1


class Mesh(ActorHandle):
    """A handle of actors in given procs, with one dimension if there are several."""

    def __init__(self, cls: type, procs: list[int], actor: int, name: str) -> None:
        self._class = cls
        self._procs, self._actor, self._name_of = procs, actor, name
        self._extent = Extent(["gpus"], [len(procs)]) if len(procs) != 1 else Extent([], [])
        self._kept: Route | None = None

    def _route(self) -> Route:
        if self._kept is None:
            engine = process().engine
            actors = [self._actor] * len(self._procs)
            self._kept = Route(engine, self._procs, actors, encode_extent(self._extent))
        return self._kept

    def _gather(self, values: list[Any], errors: dict[int, BaseException] | None) -> Any:
        return values if errors is None else (values, errors)

    def _title(self) -> str:
        return f"actor mesh {self._name_of!r} {dict(self._extent)}"

    def __reduce__(self) -> tuple[object, ...]:
        return Mesh, (self._class, self._procs, self._actor, self._name_of)

    def send(self, flags: int, body: object = None) -> Any:
        route = self._route()
        data, buffers = dumps(body)
        inbox = route.engine.call(route.targets, "", data, buffers, sender(), route.extent, flags)
        return Pending(inbox, inbox.expected, first, "the actors")


def first(inbox: Any) -> Any:
    for index in range(inbox.expected):
        _rank, status, data, _buffers = inbox.get(index)
        value = loads(data) if len(data) else None
        if status:
            raise RuntimeError(f"status {status}: {value}")
    return value


def spawn(
    cls: Any, *args: Any, procs: list[int] | None = None, name: str = "", **kwargs: Any
) -> Any:
    """Make actors; typed as `Any`, so that tests call endpoints freely."""
    procs = procs or [process().id]
    mesh = Mesh(cls, procs, new_id(), name or cls.__name__.lower())
    info = (mesh._name_of, 1, mesh._name_of, None, (process().id, sender()), ())
    flags = CREATE | (LOOP if needs_loop(cls) else 0)
    mesh.created = mesh.send(flags, (cls, args, kwargs, info))
    return mesh


def stop(mesh: Any, reason: str = "") -> None:
    mesh.send(STOP, reason).get(timeout=20)


def start_child() -> int:
    """Fork a process that works for this one, also while this one has threads."""
    own, other = socket.socketpair()
    proc, parent = new_id(), process().id
    pid = os.fork()
    if pid == 0:
        try:
            own.close()
            child = start_proc(proc, parent, other.detach())
            child.on_link_lost(lambda _peer: os._exit(0))
            work(child.engine.main_worker())
        except BaseException:  # noqa: BLE001 - the test sees that the child is gone
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)
    other.close()
    process().engine.add_link(proc, own.detach())
    children.append(pid)
    return proc


children: list[int] = []
