"""Controllers: one actor of a name for the whole program."""

from __future__ import annotations

import asyncio
import os

import pytest

from monarch.actor import ActorError, get_or_spawn_controller, this_proc
from tests.monarch.mesh.actors import Asker, Counter, Named

T = 60


def test_all_processes_get_the_same_controller_in_the_programs_process(spawn):
    first = get_or_spawn_controller("named", Named, "first").get(timeout=T)
    label, asked, pid = first.ask.call_one().get(timeout=T)
    assert (label, pid) == ("first", os.getpid())
    askers = spawn(n=2).spawn("askers", Asker)
    answers = list(askers.ask.call("other").get(timeout=T).values())
    assert [(one[0], one[2]) for one in answers] == [("first", os.getpid())] * 2
    assert sorted(one[1] for one in answers) == [asked + 1, asked + 2]
    again = get_or_spawn_controller("named", Named, "again").get(timeout=T)
    assert again.ask.call_one().get(timeout=T)[1] == asked + 3


def test_a_controller_of_another_class_is_refused():
    get_or_spawn_controller("typed", Named, "x").get(timeout=T)
    with pytest.raises(ValueError, match=r"'typed'.* is a Named, and a Counter was asked for"):
        get_or_spawn_controller("typed", Counter).get(timeout=T)


def test_a_failed_controller_is_told_to_all_who_ask_and_to_nobody_else(failures):
    for _ in range(2):
        with pytest.raises(
            ActorError, match=r"controller 'broken' has failed: .*bad label"
        ) as caught:
            get_or_spawn_controller("broken", Named, "bad").get(timeout=T)
        assert isinstance(caught.value.exception, ValueError)
    this_proc().spawn("other", Named, "bad")
    failures.wait(1)
    assert [failure.mesh_name for failure in failures] == ["other"]


def test_a_controller_that_cannot_be_made_is_refused_where_it_is_asked_for():
    with pytest.raises(TypeError, match="Named"):
        get_or_spawn_controller("unmade", Named)
    with pytest.raises(TypeError, match="derives from Actor"):
        get_or_spawn_controller("unmade", int)


def test_a_controller_is_awaited_in_a_coroutine():
    async def ask() -> tuple[str, int, int]:
        found = await get_or_spawn_controller("awaited", Named, "x")
        return await found.ask.call_one()

    assert asyncio.run(ask())[0] == "x"
