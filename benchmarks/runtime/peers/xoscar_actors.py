"""xoscar: a pool of processes, one actor in each, on uvloop."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import xoscar

from peers.peer import LoopPeer


class Cell(xoscar.Actor):
    def inc(self, value: int) -> int:
        return value + 1

    def echo(self, payload: Any) -> Any:
        return payload

    def pid(self) -> int:
        return os.getpid()

    def sleep(self, seconds: float) -> int:
        time.sleep(seconds)
        return 1


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Adapter(LoopPeer):
    tells_of_deaths = True

    def make_loop(self) -> Any:
        import uvloop  # noqa: PLC0415 - part of the cold start

        return uvloop.new_event_loop()

    async def start(self) -> None:
        self.deaths: list[str] = []
        self.made = 0

    async def _pool(self, count: int) -> Any:
        return await xoscar.create_actor_pool(
            f"127.0.0.1:{_free_port()}",
            n_process=count,
            auto_recover=False,
            on_process_down=lambda _, address: self.deaths.append(str(address)),
        )

    async def make(self, count: int) -> list[Any]:
        pool = await self._pool(count)
        places = list(pool.sub_processes)
        self.made += 1
        return [
            await xoscar.create_actor(Cell, uid=f"{self.made}.{rank}", address=places[rank])
            for rank in range(count)
        ]

    def ask(self, group: list[Any], rank: int, name: str, *arguments: Any) -> Any:
        return getattr(group[rank], name)(*arguments)

    def submit(self, group: list[Any], rank: int, name: str, *arguments: Any) -> Any:
        async def one() -> Any:
            return await self.ask(group, rank, name, *arguments)

        return self.loop.create_task(one())

    async def remake(self, group: list[Any], rank: int) -> list[Any]:
        (group[rank],) = await self.make(1)
        return group

    def wait_for_notice(self, seconds: float) -> str:
        async def watch() -> str:
            end = time.perf_counter() + seconds
            while not self.deaths and time.perf_counter() < end:
                await self.asyncio.sleep(0.002)
            return self.deaths[0] if self.deaths else ""

        return str(self.run(watch()))

    def spawn_local(self, count: int) -> list[Any]:
        async def make() -> list[Any]:
            pool = await self._pool(1)
            address = pool.external_address
            return [
                await xoscar.create_actor(Cell, uid=f"local.{number}", address=address)
                for number in range(count)
            ]

        return list(self.run(make()))
