"""Classes of the script: what is changed in them here is so there with the next message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

HEAD = """
import abc, enum, re, typing
from dataclasses import dataclass, field
from monarch.actor import Actor, endpoint, this_host

factor = 2
table = [1]

def helper(x):
    return x * factor

class Base:
    tag = "base"
    def name(self): return self.tag

@dataclass
class Config(Base):
    value: int = 1
    names: list = field(default_factory=list)
    count: typing.ClassVar[int] = 0
    def scaled(self): return helper(self.value)
    def listed(self): return list(table)
    @property
    def half(self): return self.value / 2
    @staticmethod
    def fixed(): return "fixed"
    @classmethod
    def made(cls): return cls(5)

class Color(enum.Enum):
    RED = 1
    BLUE = 2

class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

class Square(Shape):
    def area(self): return 4

class Pair(typing.NamedTuple):
    left: int
    right: str

class Slots:
    __slots__ = ("inner",)

class Looks(Actor):
    def __init__(self):
        self.last = None
    @endpoint
    def ask(self, value, what, *args):
        found = getattr(value, what)
        return found(*args) if callable(found) else found
    @endpoint
    def same(self, value):
        before, self.last = self.last, type(value)
        return before is self.last
    @endpoint
    def change(self, value, name, new):
        setattr(type(value), name, new)
    @endpoint
    def echo(self, value):
        return value

looks = this_host().spawn_procs().spawn("looks", Looks)
def ask(*args): return looks.ask.call_one(*args).get(timeout=60)
def same(value): return looks.same.call_one(value).get(timeout=60)
def echo(value): return looks.echo.call_one(value).get(timeout=60)
"""


def run(tmp_path: Path, body: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + body, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "runtime"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


CHANGES = {
    "a method": "Config.scaled = lambda self: 'new'; assert ask(one, 'scaled') == 'new'",
    "a method's code": "Config.scaled.__code__ = (lambda self: 'new').__code__\n"
    "assert ask(one, 'scaled') == 'new'",
    "a variable of the class and back": "Config.count = 7; assert ask(one, 'count') == 7\n"
    "Config.count = 0; assert ask(one, 'count') == 0\n"
    "Config.count = 7; assert ask(one, 'count') == 7",
    "a global that a function uses which a method calls": "factor = 3\n"
    "assert ask(one, 'scaled') == 3",
    "a function that a method calls": "def helper(x): return 'other'\n"
    "assert ask(one, 'scaled') == 'other'",
    "a list in place that a method uses": "table.append(2); assert ask(one, 'listed') == [1, 2]",
    "the class it is derived from": "Base.tag = 'changed'; assert ask(one, 'name') == 'changed'",
    "the class anew": "class Config(Base):\n    scaled = lambda self: 'again'\n"
    "assert ask(Config(), 'scaled') == 'again'; assert ask(one, 'scaled') == 2\n"
    "assert same(one) and not same(Config()) and not same(one)",
    "a property": "Config.half = property(lambda self: 'half'); assert ask(one, 'half') == 'half'",
    "a default": "Config.plus = lambda self, x=1: x; assert ask(one, 'plus') == 1\n"
    "Config.plus.__defaults__ = (2,); assert ask(one, 'plus') == 2",
    "what a closure holds": "def close(x):\n    def f(self): return x\n"
    "    def set_(new):\n        nonlocal x\n        x = new\n    return f, set_\n"
    "Config.closed, set_ = close(1); assert ask(one, 'closed') == 1\n"
    "set_(5); assert ask(one, 'closed') == 5",
    "an attribute less": "Config.more = 1; assert ask(one, 'more') == 1\n"
    "del Config.more; Config.scaled = lambda self: 'x'; assert ask(one, 'scaled') == 'x'",
    "what the other side has changed": "looks.change.call_one(one, 'count', 9).get(timeout=60)\n"
    "assert ask(one, 'count') == 0",
    "what came back": "back = echo(one); assert type(back) is Config; assert back == one\n"
    "Config.count = 8; assert ask(back, 'count') == 8; assert type(echo(back)) is Config",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_seen_by_the_next_call(tmp_path, what):
    run(
        tmp_path,
        "one = Config()\nassert ask(one, 'scaled') == 2\nassert ask(one, 'listed') == [1]\n"
        "assert not same(one) and same(one)\n" + CHANGES[what],
    )


def test_classes_of_all_kinds_arrive_as_the_same_each_time(tmp_path):
    run(
        tmp_path,
        "slots = Slots(); slots.inner = 3\n"
        "for value in (Config(4, ['a']), Color.RED, Square(), Pair(1, 'a'), slots, looks):\n"
        "    assert not same(value)\n"
        "    assert same(value) and same(value), value\n"
        "assert echo(Color.BLUE) is Color.BLUE\n"
        "assert echo(Pair(1, 'a')) == Pair(1, 'a') and type(echo(Pair(1, 'a'))) is Pair\n"
        "assert isinstance(echo(Square()), Shape) and ask(Square(), 'area') == 4\n"
        "assert echo([Config(1), Config(2), Color.RED])[1] == Config(2)\n"
        "assert ask(Config(), 'fixed') == 'fixed' and ask(Config(), 'made') == Config(5)\n"
        "assert ask(slots, 'inner') == 3\n"
        "assert echo(Config) is Config and echo({Color.RED: Config})[Color.RED] is Config\n",
    )


_KEPT = """
looks.initialized.get(timeout=60)
from monarch._actor import classes
from monarch._actor.by_value import dumps_by_value

made = []
whole = classes.cloudpickle._class_getstate
classes.cloudpickle._class_getstate = lambda cls: made.append(cls) or whole(cls)
"""


@pytest.mark.parametrize("name", ["Config", "Color", "Square", "Pair", "Slots", "Looks"])
def test_a_class_is_pickled_once(tmp_path, name):
    body = f"table = (1,)\ncls = {name}\ndumps_by_value(cls)\n"
    run(
        tmp_path,
        _KEPT + body + "count = len(made)\nassert classes._parts(cls)\n"
        "dumps_by_value((cls, [cls]))\nassert len(made) == count, made[count:]\n",
    )
