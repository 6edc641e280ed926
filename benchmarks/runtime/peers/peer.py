"""What an adapter gives: start the peer, make actors, call them. The loops that are timed."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

now = time.perf_counter


class Cell:
    """The actor of every peer; those whose API wants decorators repeat it."""

    def inc(self, value: int) -> int:
        return value + 1

    def echo(self, payload: Any) -> Any:
        return payload

    def pid(self) -> int:
        return os.getpid()

    def sleep(self, seconds: float) -> int:
        time.sleep(seconds)
        return 1


class Peer:
    """A peer whose calls block. A group is whatever `spawn` returns: a list of actors at least."""

    tells_of_deaths = False  # without being asked
    limit = 45.0  # seconds that one timed loop may take

    def boot(self) -> None:
        """Import and start the runtime."""

    def spawn(self, count: int) -> Any:
        """A group of actors, each in a process of its own; they need not run yet."""
        raise NotImplementedError

    def call(self, group: Any, rank: int, name: str, *arguments: Any) -> Any:
        return self.wait([self.submit(group, rank, name, *arguments)])[0]

    def submit(self, group: Any, rank: int, name: str, *arguments: Any) -> Any:
        raise NotImplementedError

    def wait(self, pending: list[Any]) -> list[Any]:
        raise NotImplementedError

    def call_all(self, group: Any, name: str, *arguments: Any) -> list[Any]:
        return self.wait([self.submit(group, r, name, *arguments) for r in range(len(group))])

    def replace(self, group: Any, rank: int) -> Any:
        """A new process for a dead rank; returns the group to use from now on."""
        raise NotImplementedError

    def wait_for_notice(self, seconds: float) -> str:
        """What the peer says of a death by itself."""
        raise NotImplementedError(seconds)

    def spawn_local(self, count: int) -> Any:
        """A group of actors in one process, which is this one where the peer can do so."""
        raise NotImplementedError(count)

    def close(self) -> None:
        """Stop the runtime."""

    def latencies(self, group: Any, rank: int, count: int) -> list[float]:
        taken, end = [], now() + self.limit
        for value in range(count):
            start = now()
            result = self.call(group, rank, "inc", value)
            taken.append(now() - start)
            assert result == value + 1
            if now() > end:
                break
        return taken

    def pipelined(self, group: Any, rank: int, count: int) -> float:
        """Seconds from the first of `count` calls to the last result."""
        start = now()
        results = self.wait([self.submit(group, rank, "inc", value) for value in range(count)])
        taken = now() - start
        assert len(results) == count
        assert results[-1] == count
        return taken

    def gathers(self, group: Any, count: int) -> list[float]:
        taken, end = [], now() + self.limit / 3
        for value in range(count):
            start = now()
            results = self.call_all(group, "inc", value)
            taken.append(now() - start)
            assert list(results) == [value + 1] * len(group)
            if now() > end:
                break
        return taken

    def echoes(self, group: Any, rank: int, payload: Any, count: int) -> list[float]:
        taken, end = [], now() + self.limit / 3
        for _ in range(count):
            start = now()
            result = self.call(group, rank, "echo", payload)
            taken.append(now() - start)
            assert len(result) == len(payload)
            if now() > end:
                break
        return taken


class LoopPeer(Peer):
    """A peer of coroutines; each timed loop runs whole inside the event loop."""

    def make_loop(self) -> Any:
        import asyncio  # noqa: PLC0415 - costs more than the rest of this package

        return asyncio.new_event_loop()

    async def start(self) -> None:
        """As `boot`."""

    async def make(self, count: int) -> Any:
        raise NotImplementedError(count)

    async def ask(self, group: Any, rank: int, name: str, *arguments: Any) -> Any:
        raise NotImplementedError

    async def remake(self, group: Any, rank: int) -> Any:
        raise NotImplementedError

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def boot(self) -> None:
        import asyncio  # noqa: PLC0415 - as above

        self.loop, self.asyncio = self.make_loop(), asyncio
        self.run(self.start())

    def spawn(self, count: int) -> Any:
        return self.run(self.make(count))

    def call(self, group: Any, rank: int, name: str, *arguments: Any) -> Any:
        return self.run(self.ask(group, rank, name, *arguments))

    def submit(self, group: Any, rank: int, name: str, *arguments: Any) -> Any:
        return self.loop.create_task(self.ask(group, rank, name, *arguments))

    def wait(self, pending: list[Any]) -> list[Any]:
        return list(self.run(self._together(pending)))

    def call_all(self, group: Any, name: str, *arguments: Any) -> list[Any]:
        return list(self.run(self._gather(group, name, *arguments)))

    def replace(self, group: Any, rank: int) -> Any:
        return self.run(self.remake(group, rank))

    async def _together(self, pending: list[Any]) -> Any:
        return await self.asyncio.gather(*pending)

    async def _gather(self, group: Any, name: str, *arguments: Any) -> Any:
        calls = [self.ask(group, rank, name, *arguments) for rank in range(len(group))]
        return await self.asyncio.gather(*calls)

    def latencies(self, group: Any, rank: int, count: int) -> list[float]:
        async def loop() -> list[float]:
            taken, end = [], now() + self.limit
            for value in range(count):
                start = now()
                result = await self.ask(group, rank, "inc", value)
                taken.append(now() - start)
                assert result == value + 1
                if now() > end:
                    break
            return taken

        return list(self.run(loop()))

    def pipelined(self, group: Any, rank: int, count: int) -> float:
        async def loop() -> float:
            start = now()
            calls = [self.ask(group, rank, "inc", value) for value in range(count)]
            results = await self.asyncio.gather(*calls)
            assert results[-1] == count
            return now() - start

        return float(self.run(loop()))

    def gathers(self, group: Any, count: int) -> list[float]:
        async def loop() -> list[float]:
            taken, end = [], now() + self.limit / 3
            for value in range(count):
                start = now()
                results = await self._gather(group, "inc", value)
                taken.append(now() - start)
                assert list(results) == [value + 1] * len(group)
                if now() > end:
                    break
            return taken

        return list(self.run(loop()))

    def echoes(self, group: Any, rank: int, payload: Any, count: int) -> list[float]:
        async def loop() -> list[float]:
            taken, end = [], now() + self.limit / 3
            for _ in range(count):
                start = now()
                result = await self.ask(group, rank, "echo", payload)
                taken.append(now() - start)
                assert len(result) == len(payload)
                if now() > end:
                    break
            return taken

        return list(self.run(loop()))
