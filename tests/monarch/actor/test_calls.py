"""Calls of endpoints: what arrives, what comes back, and what is refused before it is sent."""

from __future__ import annotations

import asyncio
import threading

import pytest

from monarch._actor.actor import Actor, reserved
from monarch._actor.context import current_rank
from monarch._actor.decorators import concurrent_endpoint, endpoint
from monarch._actor.handle import as_endpoint
from monarch.errors import ActorError, SupervisionError
from tests.monarch.actor.rig import process, spawn, stop


class Counter(Actor):
    def __init__(self, value: int = 0) -> None:
        self.value = value

    @endpoint
    def increment(self, by: int = 1) -> int:
        self.value += by
        return self.value

    @endpoint
    def sum(self, left: int, right: int) -> int:
        return left + right

    @endpoint
    def add_one(self, to: int) -> int:
        return self.sum(to, 1)

    @endpoint
    def fail(self, text: str) -> None:
        raise ValueError(text)

    @endpoint
    async def increment_later(self, by: int = 1) -> int:
        self.value += by
        return self.value

    @endpoint
    async def fail_later(self, text: str) -> None:
        raise ValueError(text)

    @endpoint
    def run_a_loop(self) -> None:
        nothing = asyncio.sleep(0)
        try:
            asyncio.run(nothing)
        finally:
            nothing.close()

    def hidden(self, by: int) -> int:
        return self.value * by


class Plain(Actor):
    def __init__(self) -> None:
        self.seen: list[int] = []

    @endpoint
    def see(self, number: int) -> None:
        self.seen.append(number)

    @endpoint
    def all_seen(self) -> list[int]:
        return self.seen

    @endpoint
    def where(self) -> int:
        return current_rank().rank


def test_call_one_gives_the_result(procs):
    counter = spawn(Counter, 5, procs=procs)
    assert counter.increment.call_one(by=2).get(timeout=20) == 7
    assert counter.increment.call_one().get(timeout=20) == 8


def test_plain_and_async_endpoints_live_in_one_class(procs):
    counter = spawn(Counter, procs=procs)
    assert counter.increment_later.call_one(3).get(timeout=20) == 3
    assert counter.increment.call_one(3).get(timeout=20) == 6


def test_a_plain_endpoint_that_cannot_run_a_loop_of_its_own_is_told_why(procs):
    with pytest.raises(ActorError) as caught:
        spawn(Counter, procs=procs).run_a_loop.call_one().get(timeout=20)
    assert isinstance(caught.value.exception, RuntimeError)
    text = (
        "Counter has async endpoints, so 'run_a_loop' runs on their loop too: make it `async def`"
    )
    assert text in str(caught.value)


@pytest.mark.promise("R01")
def test_messages_of_one_sender_are_handled_in_order_across_adverbs(procs):
    actor = spawn(Plain, procs=procs)
    for number in range(0, 300, 3):
        actor.see.broadcast(number)
        actor.see.call_one(number + 1)
        actor.see.call(number + 2)
    assert actor.all_seen.call_one().get(timeout=20) == list(range(300))


@pytest.mark.report("61")
def test_an_actor_calls_its_own_endpoint_as_a_plain_method(procs):
    assert spawn(Counter, procs=procs).add_one.call_one(4).get(timeout=20) == 5


@pytest.mark.report("60")
@pytest.mark.parametrize("name", ["fail", "fail_later"])
def test_the_callers_of_a_failing_endpoint_get_its_exception_and_traceback(procs, name):
    counter = spawn(Counter, procs=procs)
    with pytest.raises(ActorError) as caught:
        getattr(counter, name).call_one("beep").get(timeout=20)
    assert isinstance(caught.value.exception, ValueError)
    assert "ValueError: beep" in str(caught.value)
    assert f"in {name}" in caught.value.exception_formatted
    assert "_actor" not in caught.value.exception_formatted.replace("tests/monarch/actor", "")
    assert counter.increment.call_one().get(timeout=20) == 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda actor: actor.sum.call_one(1), "missing a required argument: 'right'"),
        (lambda actor: actor.sum.call_one(1, 2, 3), "too many positional arguments"),
        (lambda actor: actor.sum.call(1, right=2, more=3), "unexpected keyword argument 'more'"),
        (lambda actor: actor.sum.broadcast(left=1), "missing a required argument: 'right'"),
        (lambda actor: actor.sum.stream(), "missing a required argument"),
        (lambda actor: actor.sum.choose(1, 2, left=3), "multiple values for argument 'left'"),
    ],
)
def test_a_call_that_does_not_fit_the_signature_raises_where_it_is_made(call, text):
    with pytest.raises(TypeError, match=text):
        call(spawn(Counter))


def test_an_endpoint_called_without_an_adverb_says_what_to_write():
    with pytest.raises(TypeError, match=r"call_one\(\.\.\.\)"):
        spawn(Counter).increment(3)


def test_a_method_that_is_no_endpoint_is_called_through_as_endpoint(procs):
    counter = spawn(Counter, 4, procs=procs)
    with pytest.raises(RuntimeError, match="as_endpoint"):
        counter.hidden(3)
    assert as_endpoint(counter.hidden).call_one(3).get(timeout=20) == 12
    with pytest.raises(ValueError, match="as_endpoint takes a method"):
        as_endpoint(len)


def test_an_endpoint_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(AttributeError, match=r"no endpoint 'nothing'.*increment"):
        _ = spawn(Counter).nothing


@pytest.mark.parametrize("name", ["size", "slice", "stop", "extent", "__call__"])
def test_a_reserved_endpoint_name_is_refused_when_the_class_is_defined(name):
    def method(self):
        """Nothing."""

    method.__name__ = name
    with pytest.raises(ValueError, match=r"Reserved names: .*flatten.*split"):
        type("Taken", (Actor,), {name: endpoint(method)})
    assert name in reserved() or name.startswith("__")


def test_a_concurrent_endpoint_has_to_be_async():
    with pytest.raises(ValueError, match=r"plain is none: write `async def`"):

        @concurrent_endpoint
        def plain(self) -> None:
            """Nothing."""


def test_a_concurrent_endpoint_is_no_endpoint_of_the_other_kind_before():
    with pytest.raises(ValueError, match=r"twice is an endpoint already; leave one"):

        @concurrent_endpoint
        @endpoint
        async def twice(self) -> None:
            """Nothing."""


def test_a_mesh_is_called_as_a_whole(child):

    mesh = spawn(Plain, procs=[process().id, child])
    assert mesh.where.call().get(timeout=20) == [0, 1]
    assert sorted(future.get(timeout=20) for future in mesh.where.stream()) == [0, 1]
    assert {mesh.where.choose().get(timeout=20) for _ in range(4)} == {0}
    with pytest.raises(ValueError, match="this one has 2"):
        mesh.where.call_one()


def test_a_stopped_actor_handles_what_came_before_and_refuses_what_comes_after(procs):
    actor = spawn(Counter, procs=procs)
    futures = [actor.increment.call_one() for _ in range(20)]
    stop(actor, "done with it")
    assert [future.get(timeout=20) for future in futures] == list(range(1, 21))
    with pytest.raises(SupervisionError, match="done with it"):
        actor.increment.call_one().get(timeout=20)


def test_calls_from_many_threads_at_once_are_all_answered(procs):
    counter = spawn(Counter, procs=procs)
    found: list[int] = []

    def run() -> None:
        found.extend(counter.increment.call_one().get(timeout=60) for _ in range(200))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 801))
