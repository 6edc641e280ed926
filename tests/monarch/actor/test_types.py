"""What a type checker knows of endpoints and their calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
from __future__ import annotations
from monarch.actor import Accumulator, Actor, Channel, Port, concurrent_endpoint, endpoint
from monarch.actor import ValueMesh, get_or_spawn_controller, this_host

class Counter(Actor):
    def __init__(self, v: int) -> None:
        self.v = v
    @endpoint
    def inc(self, by: int = 1) -> int:
        return by
    @endpoint
    async def name(self) -> str:
        return ""
    @endpoint(instrument=False)
    async def opt(self, x: float) -> list[str]:
        return []
    @concurrent_endpoint
    async def conc(self, x: float) -> bytes:
        return b""
    @endpoint(explicit_response_port=True)
    def port(self, port: Port[int], x: str) -> None:
        port.send(3)

c = this_host().spawn_procs(per_host={"gpus": 2}).spawn("c", Counter, 1)
port, receiver = Channel[int].open()
spawned = get_or_spawn_controller("c", Counter, 1).get()

async def both() -> tuple[int, ValueMesh[str]]:
    return await c.inc.call_one(1), await c.name.call()

awaited = both()
"""

KNOWN = {
    "c.inc.call_one(1)": "Future[int]",
    "c.inc.call_one(by=1).get()": "int",
    "c.inc.call(2).get()": "ValueMesh[int]",
    "c.inc.options(timeout=1).call(1).get()": "ValueMesh[int]",
    "c.inc.choose()": "Future[int]",
    "next(c.inc.stream(1)).get()": "int",
    "c.name.call_one().get()": "str",
    "c.opt.call_one(2.0).get()": "list[str]",
    "c.conc.call_one(2.0).get()": "bytes",
    "c.port.call_one('a').get()": "int",
    "Accumulator(c.inc, 0, lambda a, b: a + b).accumulate(1).get()": "int",
    "receiver.recv().get()": "int",
    "c.slice(gpus=0).inc.call_one()": "Future[int]",
    "c.inc.call().get().item(gpus=0)": "int",
    "c.inc.call_one().result()": "int",
    "c.inc.call_one().as_asyncio()": "Future[int]",
    "[value for _point, value in c.inc.call().get().items()]": "list[int]",
    "spawned": "Counter",
    "awaited": "Coroutine[Any, Any, tuple[int, ValueMesh[str]]]",
}

WRONG = {
    "c.inc.call_one('x')": 'expected "int"',
    "c.inc.call_one(1, 2)": "Too many arguments",
    "c.name.call(1)": "Too many arguments",
    "c.nothing.call()": 'has no attribute "nothing"',
    "port.send('x')": 'expected "int"',
}


@pytest.mark.slow
def test_a_type_checker_knows_arguments_and_results_of_endpoints(tmp_path, monkeypatch):
    lines = PROGRAM.splitlines()
    first = len(lines) + 1
    lines += [f"reveal_type({expression})" for expression in KNOWN] + list(WRONG)
    source = tmp_path / "program.py"
    source.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("MYPYPATH", str(ROOT / "runtime"))
    cache = str(tmp_path / "cache")
    out, err, _status = api.run(["--strict", "--follow-imports=silent", f"--cache-dir={cache}",
                                 "--config-file=", str(source)])  # fmt: skip
    said = {int(line): text for line, text in re.findall(r"program\.py:(\d+): (.*)", out)}
    revealed = {
        expression: re.sub(r"[\w.]+\.(\w+)", r"\1", said[first + place].split('"')[1])
        for place, expression in enumerate(KNOWN)
    }
    assert revealed == KNOWN, err
    for place, (expression, text) in enumerate(WRONG.items()):
        assert text in said.get(first + len(KNOWN) + place, "nothing"), expression
