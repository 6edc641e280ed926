"""The Monarch API: one program for torchmonarch and for this runtime."""

from __future__ import annotations

import os
import time
from typing import Any

import monarch.actor
from monarch.actor import Actor, endpoint
from peers.peer import Peer, now


class Cell(Actor):
    @endpoint
    def inc(self, value: int) -> int:
        return value + 1

    @endpoint
    def echo(self, payload: Any) -> Any:
        return payload

    @endpoint
    def pid(self) -> int:
        return os.getpid()

    @endpoint
    def sleep(self, seconds: float) -> int:
        time.sleep(seconds)
        return 1


class Group(list[Any]):
    """Slices of one rank each, the whole mesh, and the procs below it."""

    whole: Any
    procs: Any


class Adapter(Peer):
    tells_of_deaths = True
    local_batch = 10**9
    actor: Any = Cell

    def boot(self) -> None:
        self.deaths: list[str] = []
        monarch.actor.unhandled_fault_hook = lambda failure: self.deaths.append(str(failure))
        self.host = monarch.actor.this_host()
        self.made = 0

    def spawn(self, count: int) -> Group:
        self.made += 1
        procs = self.host.spawn_procs(per_host={"p": count}, name=f"procs{self.made}")
        whole = procs.spawn(f"cells{self.made}", self.actor)
        group = Group(whole.slice(p=rank) for rank in range(count))
        group.whole, group.procs = whole, procs
        return group

    def submit(self, group: Group, rank: int, name: str, *arguments: Any) -> Any:
        return getattr(group[rank], name).call_one(*arguments)

    def call(self, group: Group, rank: int, name: str, *arguments: Any) -> Any:
        return getattr(group[rank], name).call_one(*arguments).get(timeout=120)

    def wait(self, pending: list[Any]) -> list[Any]:
        return [future.get(timeout=180) for future in pending]

    def call_all(self, group: Group, name: str, *arguments: Any) -> list[Any]:
        if group.whole is None:
            return super().call_all(group, name, *arguments)
        values = getattr(group.whole, name).call(*arguments).get(timeout=120)
        return [value for _, value in values.items()]

    def replace(self, group: Group, rank: int) -> Group:
        group.procs.respawn([rank])
        return group

    def wait_for_notice(self, seconds: float) -> str:
        end = now() + seconds
        while now() < end:
            for death in self.deaths:
                if "cells" in death:
                    return death
            time.sleep(0.0005)
        return ""

    def spawn_local(self, count: int) -> list[Any]:
        proc = monarch.actor.this_proc()
        cells: list[Any] = []
        while len(cells) < count:
            batch = min(self.local_batch, count - len(cells))
            fresh = [proc.spawn(f"local{len(cells) + at}", self.actor) for at in range(batch)]
            if batch < count:
                for cell in fresh:
                    cell.initialized.get(timeout=60)
            cells += fresh
        return cells


class LoopAdapter(Adapter):
    def boot(self) -> None:
        # Processes prepare for the classes there are, so a program without async ones has none.
        from peers.monarch_loop import LoopCell  # noqa: PLC0415

        self.actor = LoopCell
        super().boot()
