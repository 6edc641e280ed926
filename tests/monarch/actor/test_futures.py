"""Futures: waiting by threads, in event loops of one's own, and what to say when it takes long."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import warnings
from fractions import Fraction

import pytest

from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch._actor.future import Combined, Done, Future, Then
from monarch.errors import ActorError
from tests.monarch.actor.rig import process, spawn


class Gate(Actor):
    """Answers when it is told to; its calls wait without a clock."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()

    @endpoint
    async def value(self, what: object) -> object:
        return what

    @endpoint
    def plain(self, what: object) -> object:
        return what

    @endpoint
    async def never(self) -> None:
        await asyncio.Event().wait()

    @endpoint
    async def fail(self) -> None:
        raise KeyError("lost")


class Getter(Actor):
    def __init__(self, other) -> None:
        self.other = other

    @endpoint
    async def blocks(self) -> object:
        return self.other.value.call_one(1).get()

    @endpoint
    async def waits(self, what: object) -> object:
        return await self.other.value.call_one(what)

    @endpoint
    async def task_name(self) -> str:
        task = asyncio.current_task()
        assert task is not None
        assert asyncio.get_running_loop() is task.get_loop()
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        return type(task).__name__


def test_a_future_is_not_made_by_hand():
    with pytest.raises(TypeError, match="comes from a call"):
        Future()


def test_a_value_is_had_again_and_again(procs):
    future = spawn(Gate, procs=procs).value.call_one([1])
    assert future.get(timeout=20) == future.result(timeout=1) == [1]
    assert future.get() is future.get()
    assert future.exception() is None
    assert future.done()


def test_an_error_is_had_again_and_again(procs):
    future = spawn(Gate, procs=procs).fail.call_one()
    for _ in range(2):
        with pytest.raises(ActorError, match="KeyError"):
            future.get(timeout=20)
    assert isinstance(future.exception(), ActorError)


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_timeout_that_is_no_time_is_refused(timeout):
    future = spawn(Gate).value.call_one(1)
    with pytest.raises(ValueError, match="at least 0"):
        future.get(timeout=timeout)
    with pytest.raises(ValueError, match="at least 0"):
        spawn(Gate).value.options(timeout=timeout)


@pytest.mark.parametrize("timeout", ["1", [], object()])
def test_a_timeout_that_is_no_number_is_refused_by_name(timeout):
    actor = spawn(Gate)
    for wait in (actor.value.call_one(1).get, lambda timeout: actor.value.options(timeout=timeout)):
        with pytest.raises(TypeError, match="a timeout is a number of seconds, at least 0, not"):
            wait(timeout=timeout)


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 10**400, Fraction(20)])
def test_any_number_is_a_timeout_and_what_never_comes_leaves_the_others(procs, timeout):
    actor = spawn(Gate, procs=procs)
    assert actor.value.options(timeout=timeout).call_one(1).get(timeout=timeout) == 1
    kept = actor.value.options(timeout=timeout).call_one(2)
    late = actor.never.options(timeout=0.2).call_one()
    with pytest.raises(TimeoutError):
        late.get(timeout=20)
    assert kept.get(timeout=20) == 2


def test_a_timeout_says_what_was_waited_for_how_long_and_who_is_late(child):
    mesh = spawn(Gate, procs=[process().id, child], name="gates")
    mesh.value.call(1).get(timeout=20)
    future = mesh.never.call()
    with pytest.raises(TimeoutError) as caught:
        future.get(timeout=0.01)
    text = str(caught.value)
    assert "Gate.never on actor mesh 'gates' {'gpus': 2}" in text
    assert "0.01 s" in text
    assert "ranks 0, 1" in text
    with pytest.raises(TimeoutError):
        future.get(timeout=0)


@pytest.mark.report("64")
@pytest.mark.parametrize("adverb", ["call_one", "call", "broadcast"])
def test_a_future_as_argument_is_refused_where_the_call_is_made(adverb):
    gate = spawn(Gate)
    future = gate.value.call_one(1)
    with pytest.raises(TypeError, match=r"Gate\.value: argument 'what'\[1\].*await"):
        getattr(gate.value, adverb)([1, future])


@pytest.mark.report("63")
def test_get_in_an_async_endpoint_raises_at_once_and_says_to_await(child):
    other = spawn(Gate, procs=[child])
    getter = spawn(Getter, other, procs=[child])
    with pytest.raises(ActorError, match="Write `await`") as caught:
        getter.blocks.call_one().get(timeout=20)
    assert isinstance(caught.value.exception, RuntimeError)
    assert getter.waits.call_one("x").get(timeout=20) == "x"


def test_an_async_endpoint_runs_in_a_task_from_its_first_step(procs):
    getter = spawn(Getter, None, procs=procs)
    assert getter.task_name.call_one().get(timeout=20) == "Task"


@pytest.mark.report("63")
def test_get_in_a_clients_loop_works_and_warns_once_for_a_place(child):
    gate = spawn(Gate, procs=[child])

    async def main() -> list[object]:
        return [gate.value.call_one(number).get() for number in (1, 2)]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        assert asyncio.run(main()) == [1, 2]
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert "await" in str(warning.message)
    assert warning.filename == __file__


_CELL = """
import asyncio, sys, warnings
import ipykernel
from IPython.core.interactiveshell import InteractiveShell
from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from tests.monarch.actor.rig import spawn

if sys.argv[1] == "notebook":
    InteractiveShell.instance()

class Echo(Actor):
    @endpoint
    def value(self, what):
        return what

async def cell():
    return echo.value.call_one(3).get()

echo = spawn(Echo)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(asyncio.run(cell()), [one.category.__name__ for one in caught])
"""


@pytest.mark.slow
@pytest.mark.report("63")
@pytest.mark.parametrize(
    ("who", "told"), [("notebook", "3 []"), ("program", "3 ['RuntimeWarning']")]
)
def test_get_in_a_loop_warns_but_in_a_notebook_whatever_is_imported(who, told):
    pytest.importorskip("nbclient", reason="test group not installed: nbclient")
    done = subprocess.run(
        [sys.executable, "-c", _CELL, who],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == told, done.stderr


def test_many_calls_are_awaited_together_in_a_clients_loop(child):
    gate = spawn(Gate, procs=[child])

    async def main() -> list[object]:
        futures = [gate.value.call_one(number) for number in range(100)]
        return await asyncio.gather(*futures)

    assert asyncio.run(main()) == list(range(100))
    assert asyncio.run(main()) == list(range(100))


def test_as_asyncio_gives_a_future_of_the_running_loop(child):
    gate = spawn(Gate, procs=[child])

    async def main() -> object:
        future = gate.value.call_one("a").as_asyncio()
        assert isinstance(future, asyncio.Future)
        return await asyncio.wait_for(future, 20)

    assert asyncio.run(main()) == "a"


def test_await_without_a_loop_says_to_use_get():
    future = spawn(Gate).never.call_one()
    coroutine = future.__await__()
    with pytest.raises(RuntimeError, match=r"\.get\(\)"):
        next(coroutine)


@pytest.mark.report("68")
def test_a_cancelled_wait_logs_nothing_later(child, caplog, capfd):
    # The actor is serial: what it does not finish holds up the rest, so a second one answers.
    never, answers = spawn(Gate, procs=[child]), spawn(Gate, procs=[child])

    async def run() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(never.never.call_one(), 0.01)
        late = asyncio.ensure_future(_value_of(answers.value.call_one(1)))
        await asyncio.sleep(0)
        late.cancel()
        for number in range(20):
            assert await answers.plain.call_one(number) == number

    asyncio.run(run())
    gc.collect()
    assert caplog.records == []
    assert capfd.readouterr().err == ""


async def _value_of(future):
    return await future


def test_futures_are_combined_and_mapped():
    gate = spawn(Gate)
    both = Combined([gate.value.call_one(1), gate.value.call_one(2)], sum)
    assert Then(both, lambda value: value * 10).get(timeout=20) == 30
    failed = Then(gate.fail.call_one(), lambda value: value, rescue=str)
    assert "KeyError" in failed.get(timeout=20)
    assert Done(4).get() == 4
    with pytest.raises(OSError, match="no"):
        Done(error=OSError("no")).get()


def test_combined_futures_are_awaited(child):
    gate = spawn(Gate, procs=[child])

    async def main() -> object:
        both = Combined([gate.value.call_one(1), gate.plain.call_one(2)], sum)
        return await Then(both, lambda value: value + 1)

    assert asyncio.run(main()) == 4


def test_two_threads_wait_for_one_future(child):
    future = spawn(Gate, procs=[child]).value.call_one([7])
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(future.get(20))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[7], [7]]


def test_asyncio_is_not_loaded_by_a_program_that_does_not_use_it():
    text = "import sys, monarch.actor; print([m for m in ('asyncio', 'inspect', 'typing') "
    text += "if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "runtime"},
    )
    assert done.stdout.strip() == "[]"


class Mixed(Actor):
    def __init__(self, other) -> None:
        self.other = other

    @endpoint
    def blocks(self, what: object) -> object:
        return self.other.value.call_one(what).get(timeout=20)

    @endpoint
    def blocks_for(self, other, what: object) -> object:
        return other.value.call_one(what).get(timeout=20)

    @endpoint
    async def value(self, what: object) -> object:
        return what


def test_a_plain_endpoint_of_an_event_loop_waits_for_others_but_not_for_its_own_loop(child):
    elsewhere = spawn(Mixed, spawn(Gate), procs=[child])
    assert elsewhere.blocks.call_one(3).get(timeout=20) == 3
    beside = spawn(Mixed, spawn(Gate, procs=[child]), procs=[child], name="beside")
    assert beside.blocks.call_one(3).get(timeout=20) == 3
    with pytest.raises(ActorError, match=r"actor 'beside' lives on the event loop that it would"):
        beside.blocks_for.call_one(beside, 3).get(timeout=20)
