"""When an owner is asked of a failure: while its endpoints wait, or before the next message."""

from __future__ import annotations

import asyncio

import pytest

from monarch.actor import Actor, SupervisionError, context, endpoint, this_proc

TIMEOUT = 60


class Fatal(BaseException):
    """Ends the actor that raises it."""


class Fragile(Actor):
    @endpoint
    def die(self) -> None:
        raise Fatal

    @endpoint
    def rank(self) -> int:
        return context().actor_instance.rank.rank


class Waiting(Actor):
    """Waits in an endpoint for what its `__supervise__` hears."""

    def __init__(self, procs):
        self.owned = procs.spawn("owned", Fragile)
        self.told = []
        self.heard = asyncio.Event()

    @endpoint
    async def wait(self) -> str:
        self.owned.die.broadcast()
        async with asyncio.timeout(TIMEOUT):
            await self.heard.wait()
        return self.told[0]

    @endpoint
    async def so_far(self) -> list[str]:
        return self.told

    def __supervise__(self, failure) -> bool:
        assert context().actor_instance.name == "owner"
        self.told.append(failure.mesh_name)
        self.heard.set()
        return True


class Slow(Waiting):
    """Takes its time to deal with a failure, and answers meanwhile."""

    def __init__(self, procs):
        super().__init__(procs)
        self.go = asyncio.Event()

    @endpoint
    def lose(self) -> None:  # holds up the loop until all is known: it is asked of all together
        self.owned.die.options(on_error="collect").call().get(timeout=TIMEOUT)

    @endpoint
    async def busy(self) -> bool:
        return self.heard.is_set()

    @endpoint
    async def release(self) -> bool:
        async with asyncio.timeout(TIMEOUT):
            await self.heard.wait()
        self.go.set()
        return True

    async def __supervise__(self, failure) -> bool:
        self.heard.set()
        await self.go.wait()
        self.told.append(failure.mesh_name)
        return True


class Serial(Actor):
    """Without a loop: is asked between two messages, before those that wait."""

    def __init__(self, procs):
        self.owned = procs.spawn("owned", Fragile)
        self.told = []

    @endpoint
    def lose(self) -> bool:
        with pytest.raises(SupervisionError):
            self.owned.die.call().get(timeout=TIMEOUT)
        return bool(self.told)

    @endpoint
    def so_far(self) -> list[str]:
        return self.told

    def __supervise__(self, failure) -> bool:
        self.told.append(failure.mesh_name)
        return True


@pytest.mark.parametrize("here", [True, False], ids=["in the program", "in a proc"])
def test_an_owner_is_asked_while_an_endpoint_of_it_waits(spawn, here):
    place = this_proc() if here else spawn(owners=1)
    owner = place.spawn("owner", Waiting, spawn(gpus=1))
    assert owner.wait.call_one().get(timeout=TIMEOUT) == "owned"


def test_an_owner_answers_while_it_deals_with_a_failure(spawn):
    owner = spawn(owners=1).spawn("owner", Slow, spawn(gpus=1))
    owner.lose.call_one().get(timeout=TIMEOUT)
    assert owner.so_far.call_one().get(timeout=TIMEOUT) == []
    assert owner.release.call_one().get(timeout=TIMEOUT)


class One(Slow):
    """Deals with one failure at a time, and never comes to an end with the first."""

    async def __supervise__(self, failure) -> bool:
        assert not self.heard.is_set()
        return await super().__supervise__(failure)


def test_what_an_owner_had_no_time_for_is_told_further_up(spawn, failures):
    owner = spawn(owners=1).spawn("owner", One, spawn(gpus=3))
    owner.lose.call_one().get(timeout=TIMEOUT)
    while not owner.busy.call_one().get(timeout=TIMEOUT):
        pass
    owner.stop().get(timeout=TIMEOUT)
    failures.wait(3)
    assert sorted(one.ranks for one in failures) == [(0,), (1,), (2,)]


def test_a_sync_owner_is_asked_between_two_messages(spawn):
    owner = spawn(owners=1).spawn("owner", Serial, spawn(gpus=1))
    assert owner.lose.call_one().get(timeout=TIMEOUT) is False
    for _ in range(1000):
        if told := owner.so_far.call_one().get(timeout=TIMEOUT):
            break
    assert told == ["owned"]
