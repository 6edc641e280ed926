"""Who an actor is: its name, its id, who spawned it, and what it logs under."""

from __future__ import annotations

import io
import logging
import re
from typing import Any

import pytest

from monarch import config
from monarch.actor import Actor, context, current_actor_name, endpoint, shutdown_context, this_proc

T = 60
LINE = "<root>.<tests.monarch.mesh.test_who.Person people{'n': 1/2}>"


class Person(Actor):
    @endpoint
    def line(self) -> list[tuple[str, str, str | None, dict[str, int]]]:
        """Who it is, then who spawned it, up to the program."""
        found = []
        who: Any = context().actor_instance
        while who is not None:
            found.append((str(who), who.name, who.class_name, dict(who.rank)))
            who = who.creator
        return found

    @endpoint
    def child_line(self) -> list[tuple[str, str, str | None, dict[str, int]]]:
        return this_proc().spawn("child", Person).line.call_one().get(timeout=T)

    @endpoint
    def ids(self) -> tuple[str, str]:
        return current_actor_name(), str(context().actor_instance.actor_id)

    @endpoint
    def log(self, prefixed: bool) -> list[str]:
        config.prefix_python_logs_with_actor = prefixed
        text = io.StringIO()
        handlers = [logging.StreamHandler(text) for _ in range(2)]
        logger = logging.getLogger("of a library")
        for handler in handlers:
            logger.addHandler(handler)
            self.logger.addHandler(handler)
        logger.warning("%d%% of %s", 100, "it")
        logger.warning("100%")
        logger.warning(ValueError("an object"))
        logger.warning("")
        self.logger.debug("its own")
        for handler in handlers:
            logger.removeHandler(handler)
            self.logger.removeHandler(handler)
        return text.getvalue().split("\n")

    @endpoint
    def shut_down(self) -> bool:
        shutdown_context(host_timeout=1.0).get(timeout=T)
        return True


class Later(Person):
    @endpoint
    async def log_later(self) -> list[str]:
        text = io.StringIO()
        handler = logging.StreamHandler(text)
        logging.getLogger("of a library").addHandler(handler)
        logging.getLogger("of a library").error("soon")
        logging.getLogger("of a library").removeHandler(handler)
        return text.getvalue().split("\n")


def test_shutting_down_is_for_the_program_and_not_for_its_actors(spawn):
    people = spawn(n=2).spawn("people", Person)
    assert people.slice(n=1).shut_down.call_one().get(timeout=T)
    assert len(people.ids.call().get(timeout=T)) == 2


ROOT = ("<root>", "root", None, {})
PERSON = (LINE, "people", "tests.monarch.mesh.test_who.Person", {"n": 1})


def test_an_actor_knows_its_line_up_to_the_program(spawn):
    one = spawn(n=2).spawn("people", Person).slice(n=1)
    assert one.line.call_one().get(timeout=T) == [PERSON, ROOT]
    child = (f"{LINE}.<{PERSON[2]} child>", "child", PERSON[2], {})
    assert one.child_line.call_one().get(timeout=T) == [child, PERSON, ROOT]


def test_the_program_itself_is_the_root():
    own = context().actor_instance
    assert (str(own), own.name, own.class_name, own.creator, dict(own.rank)) == (
        *ROOT[:3],
        None,
        {},
    )
    assert current_actor_name() == own.actor_id


def test_the_current_name_tells_the_actors_of_a_mesh_apart(spawn):
    people = spawn(n=3).spawn("people", Person)
    found = people.ids.call().get(timeout=T).values()
    assert all(name == actor_id for name, actor_id in found)
    assert all(name.startswith("people") for name, _ in found)
    assert len({name for name, _ in found}) == 3


@pytest.mark.parametrize("cls", [Person, Later])
def test_log_records_of_an_actor_begin_with_its_line_once(spawn, cls):
    one = spawn(n=2).spawn("people", cls).slice(n=1)
    prefix = f"[actor={LINE.replace('Person', cls.__name__)}] "
    wanted = [f"{prefix}{text}" for text in ("100% of it", "100%", "an object")]
    wanted += ["", f"{prefix}its own"]
    doubled = [text for text in wanted for _ in range(2)]
    assert one.log.call_one(prefixed=True).get(timeout=T) == [*doubled, ""]
    plain = [text.removeprefix(prefix) for text in doubled]
    assert one.log.call_one(prefixed=False).get(timeout=T) == [*plain, ""]


def test_log_records_of_an_async_endpoint_have_the_prefix_and_the_programs_have_none(spawn):
    procs = spawn(n=2)
    local = this_proc().spawn("here", Later)
    first = procs.spawn("people", Later).slice(n=1).log_later.call_one().get(timeout=T)[0]
    assert re.fullmatch(r"\[actor=<root>\.<.*Later people.*>\] soon", first)
    assert local.log_later.call_one().get(timeout=T)[0].endswith(".Later here>] soon")
    record = logging.getLogRecordFactory()("x", logging.INFO, "x.py", 1, "mine", (), None)
    assert record.getMessage() == "mine"
