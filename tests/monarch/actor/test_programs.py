"""Whole programs: classes of the script itself, modules of all kinds, and a clean end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

HEAD = """
from monarch.actor import Actor, ActorError, endpoint, this_host
"""


def run(tmp_path: Path, body: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(HEAD + body, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "runtime"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        check=False,
    )


@pytest.mark.report("62")
def test_a_compiled_module_of_the_script_is_there_in_an_endpoint(tmp_path):
    done = run(
        tmp_path,
        """
import _struct
from _decimal import Decimal

class Packs(Actor):
    kind = _struct.Struct

    @endpoint
    def pack(self, value: Decimal) -> bytes:
        return _struct.pack("<i", int(value)) + self.kind("<b").pack(1)

packs = this_host().spawn_procs().spawn("packs", Packs)
print(packs.pack.call_one(Decimal(7)).get(timeout=30).hex())
""",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0700000001\n", "")


@pytest.mark.report("62")
def test_a_class_of_the_script_may_derive_from_a_compiled_one(tmp_path):
    done = run(
        tmp_path,
        """
from monarch._core import Decoder

class Named(Decoder):
    name = "named"

class Asks(Actor):
    @endpoint
    def ask(self, kind: type) -> tuple[str, bool, bool]:
        return Named.name, issubclass(Named, Decoder), kind is Named

asks = this_host().spawn_procs().spawn("asks", Asks)
for _ in range(2):
    print(*asks.ask.call_one(Named).get(timeout=30))
""",
    )
    wanted = "named True True\n" * 2
    assert (done.returncode, done.stdout, done.stderr) == (0, wanted, "")


def test_classes_of_the_script_keep_their_identity_and_their_lines(tmp_path):
    done = run(
        tmp_path,
        """
class Lost(Exception):
    pass

class Thing:
    def __init__(self, value):
        self.value = value

class Keeper(Actor):
    @endpoint
    def keep(self, thing):
        assert isinstance(thing, Thing)
        return Thing(thing.value + 1)

    @endpoint
    async def lose(self):
        raise Lost("gone")

keeper = this_host().spawn_procs().spawn("keeper", Keeper)
back = keeper.keep.call_one(Thing(1)).get(timeout=30)
print(type(back) is Thing, back.value)
try:
    keeper.lose.call_one().get(timeout=30)
except ActorError as error:
    print(type(error.exception) is Lost)
    print("program.py" in str(error), 'raise Lost("gone")' in str(error))
""",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True 2\nTrue\nTrue True\n", "")


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_module_that_is_missing_in_the_child_is_named_with_the_path_searched(tmp_path, kind):
    done = run(
        tmp_path,
        f"""
import sys, types

ghost = types.ModuleType("ghost")
exec("class Thing: pass", ghost.__dict__)
sys.modules["ghost"] = ghost

class Keeper(Actor):
    @endpoint
    {kind} keep(self, thing):
        return 1

keeper = this_host().spawn_procs().spawn("keeper", Keeper)
try:
    keeper.keep.call_one(ghost.Thing()).get(timeout=30)
except ActorError as error:
    print(type(error.exception).__name__, error)
print(keeper.keep.call_one(2).get(timeout=30))
""",
    )
    assert done.returncode == 0, done.stderr
    assert "ModuleNotFoundError" in done.stdout
    assert "No module named 'ghost'; this process searched" in done.stdout
    assert str(ROOT / "runtime") in done.stdout
    assert done.stdout.endswith("\n1\n")


@pytest.mark.report("66")
def test_short_programs_end_cleanly(tmp_path):
    body = """
class Echo(Actor):
    @endpoint
    def echo(self, value):
        return value

    @endpoint
    async def wait(self):
        import asyncio
        await asyncio.Event().wait()

procs = this_host().spawn_procs()
echo = procs.spawn("echo", Echo)
print(echo.echo.call_one(1).get(timeout=30))
pending = procs.spawn("more", Echo).wait.call_one()
"""
    for _ in range(8):
        done = run(tmp_path, body)
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_actors_in_the_program_itself_are_of_its_own_class_and_see_its_variables(tmp_path):
    done = run(
        tmp_path,
        """
from monarch.actor import this_proc

seen = []

class Keeps(Actor):
    def __init__(self, first: list) -> None:
        first.append(2)
        self.first = first

    @endpoint
    def keep(self, value: int) -> list:
        seen.append((value, type(self) is Keeps))
        return self.first

before = Keeps.keep
first = [1]
keeps = this_proc().spawn("keeps", Keeps, first)
print(keeps.keep.call_one(7).get(timeout=30), first, seen, Keeps.keep is before)
""",
    )
    expected = "[1, 2] [1] [(7, True)] True\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_a_class_whose_endpoints_clash_with_a_mesh_is_refused_when_it_is_defined(tmp_path):
    done = run(tmp_path, "class Sized(Actor):\n    @endpoint\n    def size(self): pass\n")
    assert "ValueError: Sized.size: a mesh has something of its own under this name" in done.stderr


ONE = """
class Adds(Actor):
    @endpoint
    def add(self, one: int, other: int) -> int:
        return one + other

"""
ASKS = """
print(this_host().spawn_procs().spawn("adds", Adds).add.call_one(1, 2).get(timeout=30))
"""


def test_a_program_goes_on_where_its_folder_has_been_removed(tmp_path):
    gone = "import os\nos.mkdir('gone')\nos.chdir('gone')\nos.rmdir('../gone')\n"
    done = run(tmp_path, gone + ONE + ASKS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


@pytest.mark.parametrize("limit", [8, 12, 16])
def test_a_program_that_may_open_next_to_nothing_is_told_the_limit(tmp_path, limit):
    few = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))\n"
    done = run(tmp_path, ONE + few + ASKS)
    assert done.returncode == 1
    assert (
        f"cannot start processes: no descriptor is free from 16 on (RLIMIT_NOFILE is {limit}"
        in (done.stderr)
    )
