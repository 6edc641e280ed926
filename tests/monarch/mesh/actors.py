"""Actors that the tests of meshes spawn."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from monarch.actor import (
    Actor,
    Channel,
    Port,
    context,
    current_rank,
    endpoint,
    get_or_spawn_controller,
    this_host,
    this_proc,
)


class Counter(Actor):
    def __init__(self, value: int = 0, step: int = 1) -> None:
        self.value = value
        self.step = step

    @endpoint
    def increment(self) -> int:
        self.value += self.step
        return self.value

    @endpoint
    def read(self) -> int:
        return self.value

    @endpoint
    def add(self, amount: int) -> int:
        self.value += amount
        return self.value


class Where(Actor):
    @endpoint
    def point(self) -> dict[str, int]:
        return dict(current_rank())

    @endpoint
    def spawn_point(self) -> tuple[int, dict[str, int]]:
        rank = context().actor_instance.rank
        return rank.rank, dict(rank)

    @endpoint
    def pid(self) -> int:
        return os.getpid()

    @endpoint
    def receive(self, receiver_of: Port[Port[int]]) -> int:
        """Wait for a number by a port of its own, which is sent to who asks for it."""
        port, receiver = Channel.open()
        receiver_of.send(port)
        return receiver.recv().get()

    @endpoint
    def variable(self, name: str) -> str | None:
        return os.environ.get(name)

    @endpoint
    def relay(self, mesh: Any) -> list[tuple[dict[str, int], Any]]:
        """What a mesh that was sent here answers."""
        return [(dict(point), value) for point, value in mesh.point.call().get()]

    @endpoint
    def shape(self, mesh: Any) -> tuple[dict[str, int], str]:
        return mesh.sizes, str(mesh)

    @endpoint
    def spawn_on(self, procs: Any) -> Any:
        return procs.spawn("sent", Where)

    @endpoint
    def spawn_below(self, count: int) -> list[int]:
        procs = this_host().spawn_procs(per_host={"n": count})
        return list(procs.spawn("below", Where).pid.call().get().values())

    @endpoint
    def noted(self, size: int) -> Noted:
        return Noted(current_rank().rank, size)

    @endpoint
    def own_meshes(self) -> tuple[int, dict[str, int], Any]:
        instance = context().actor_instance
        here = this_proc().spawn("here", Where)
        return here.pid.call_one().get(), instance.proc_mesh.sizes, this_proc().sizes


class Noted:
    """A value that notes where it is unpickled."""

    seen: ClassVar[list[int]] = []

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.content = bytes(size)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.seen.append(self.rank)


class Sensitive(Actor):
    """Fails, in its constructor or on demand, where it is told to."""

    def __init__(self, bad: tuple[int, ...] = ()) -> None:
        if context().actor_instance.rank.rank in bad:
            raise ValueError("a bad rank")

    @endpoint
    def check(self, bad: tuple[int, ...] = ()) -> int:
        rank = current_rank().rank
        if rank in bad:
            raise ValueError(f"rank {rank} is bad")
        return rank

    @endpoint
    def die(self) -> None:
        os._exit(3)


class Named(Actor):
    """A controller."""

    def __init__(self, label: str) -> None:
        if label == "bad":
            raise ValueError("bad label")
        self.label = label
        self.asked = 0

    @endpoint
    def ask(self) -> tuple[str, int, int]:
        self.asked += 1
        return self.label, self.asked, os.getpid()


class Asker(Actor):
    @endpoint
    def ask(self, label: str) -> tuple[str, int, int]:
        return get_or_spawn_controller("named", Named, label).get().ask.call_one().get()


class Keeper(Actor):
    """Keeps a mesh that was sent to it."""

    @endpoint
    def keep(self, mesh: Any) -> None:
        self.mesh = mesh

    @endpoint
    def pids(self) -> list[int]:
        return list(self.mesh.pid.call().get().values())
