"""Async endpoints: serial unless declared concurrent, on one loop with everything asyncio has."""

from __future__ import annotations

import asyncio
import contextvars
import socket
import threading

import pytest

from monarch._actor.actor import Actor
from monarch._actor.context import context
from monarch._actor.decorators import concurrent_endpoint, endpoint
from monarch.errors import ActorError, SupervisionError
from tests.monarch.actor.rig import Pending, spawn, stop

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Serial(Actor):
    def __init__(self) -> None:
        self.log: list[str] = []

    @endpoint
    async def slow(self, name: str) -> None:
        self.log.append(f"{name} begins")
        for _ in range(3):
            await asyncio.sleep(0)
        self.log.append(f"{name} ends")

    @endpoint
    def note(self, name: str) -> None:
        self.log.append(name)

    @endpoint
    async def take_log(self) -> list[str]:
        return self.log


class Concurrent(Actor):
    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.waiting = 0
        self.order: list[int] = []
        self.cleaned: list[str] = []

    @concurrent_endpoint
    async def wait(self, number: int) -> int:
        self.order.append(number)
        self.waiting += 1
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cleaned.append(f"cancelled {number}")
            raise
        return number

    @endpoint
    async def open(self) -> list[int]:
        self.opened.set()
        return self.order

    @endpoint
    def count(self) -> int:
        return self.waiting

    async def __cleanup__(self, exception: BaseException | None) -> None:
        await asyncio.sleep(0)
        WITNESS.extend([*self.cleaned, f"cleanup {exception}"])


WITNESS: list[str] = []


class Names(Actor):
    @concurrent_endpoint
    async def name_of(self, text: str) -> tuple[str, str, int]:
        VARIABLE.set(text)
        rank = context().message_rank.rank
        for _ in range(5):
            await asyncio.sleep(0)
        return VARIABLE.get(), context().actor_instance.name, rank


class Sleeper(Actor):
    @endpoint
    async def nap(self, seconds) -> str:
        await asyncio.sleep(seconds)
        return "woke"

    @endpoint
    async def in_thread(self) -> int:
        return await asyncio.to_thread(lambda: 5)

    @endpoint
    async def through_pipe(self) -> bytes:
        left, right = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=left)
        other_reader, other = await asyncio.open_connection(sock=right)
        writer.write(b"hello")
        other.write(await other_reader.readexactly(5))
        found = await reader.readexactly(5)
        for one in (writer, other):
            one.close()
            await one.wait_closed()
        return found

    @endpoint
    async def leaves(self) -> None:
        raise SystemExit(3)


def test_an_awaiting_endpoint_holds_up_its_actor_only(procs):
    first, second = spawn(Serial, procs=procs), spawn(Serial, procs=procs)
    for name in ("a", "b"):
        first.slow.broadcast(name)
    first.note.broadcast("c")
    second.note.broadcast("d")
    assert second.take_log.call_one().get(timeout=20) == ["d"]
    log = first.take_log.call_one().get(timeout=20)
    assert log == ["a begins", "a ends", "b begins", "b ends", "c"]


def test_concurrent_endpoints_start_in_order_and_let_the_next_message_in(procs):
    actor = spawn(Concurrent, procs=procs)
    futures = [actor.wait.call_one(number) for number in range(20)]
    assert actor.count.call_one().get(timeout=20) == 20
    assert actor.open.call_one().get(timeout=20) == list(range(20))
    assert [future.get(timeout=20) for future in futures] == list(range(20))


def test_what_runs_when_an_actor_stops_is_cancelled_before_its_cleanup():
    WITNESS.clear()
    actor = spawn(Concurrent)
    futures = [actor.wait.call_one(number) for number in range(2)]
    assert actor.count.call_one().get(timeout=20) == 2
    stop(actor)
    assert WITNESS == ["cancelled 0", "cancelled 1", "cleanup None"]
    for future in futures:
        with pytest.raises(SupervisionError):
            future.get(timeout=20)


OPENED: dict[str, threading.Event] = {}


class Blocking(Actor):
    """Blocks its own event loop, from its constructor on if it is told to."""

    def __init__(self, waits_for: str = "") -> None:
        if waits_for:
            assert OPENED.setdefault(waits_for, threading.Event()).wait(20)

    @endpoint
    async def wait_for(self, name: str) -> int:
        assert OPENED.setdefault(name, threading.Event()).wait(20)
        return threading.get_ident()

    @endpoint
    async def open(self, name: str) -> int:
        OPENED.setdefault(name, threading.Event()).set()
        return threading.get_ident()


def test_an_actor_that_blocks_its_loop_holds_up_no_other(procs):
    waiting = spawn(Blocking, procs=procs)
    held = waiting.wait_for.call_one("call")
    opening = spawn(Blocking, procs=procs)
    assert opening.open.call_one("call").get(timeout=10) != held.get(timeout=10)
    begun = spawn(Blocking, "constructor", procs=procs).open.call_one("never read")
    assert opening.open.call_one("constructor").get(timeout=10) != begun.get(timeout=10)


def test_many_actors_share_a_number_of_loops(procs):
    actors = [spawn(Blocking, procs=procs) for _ in range(100)]
    futures = [actor.open.call_one("shared") for actor in actors]
    assert 1 < len({future.get(timeout=20) for future in futures}) <= 32


def test_each_task_has_a_context_of_its_own(procs):
    actor = spawn(Names, procs=procs, name="names")
    futures = [actor.name_of.call_one(str(number)) for number in range(10)]
    expected = [(str(number), "names", 0) for number in range(10)]
    assert [future.get(timeout=20) for future in futures] == expected


def test_timers_threads_and_sockets_work_in_an_endpoint(procs):
    actor = spawn(Sleeper, procs=procs)
    assert actor.nap.call_one(0.001).get(timeout=20) == "woke"
    assert actor.in_thread.call_one().get(timeout=20) == 5
    assert actor.through_pipe.call_one().get(timeout=20) == b"hello"


def test_a_system_exit_in_an_async_endpoint_fails_the_actor_not_its_loop(procs):
    other, actor = spawn(Sleeper, procs=procs), spawn(Sleeper, procs=procs)
    with pytest.raises(SupervisionError, match="SystemExit"):
        actor.leaves.call_one().get(timeout=20)
    with pytest.raises(SupervisionError, match="SystemExit"):
        actor.nap.call_one(0).get(timeout=20)
    assert other.nap.call_one(0).get(timeout=20) == "woke"


def test_wrong_arguments_of_an_async_endpoint_are_its_callers(procs):
    actor = spawn(Sleeper, procs=procs)
    with pytest.raises(ActorError, match="TypeError"):
        actor.nap.call_one("long").get(timeout=20)
    assert isinstance(actor.created, Pending)
