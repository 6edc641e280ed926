"""The small programs of examples/ run as a newcomer runs them, and print what they should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
OF_THEIR_OWN = {"elastic_ddp", "slurm_hosts"}  # need more than this package; tested elsewhere
PRINTED = {
    "counter": """\
one: 15
worker 0 holds 111
worker 1 holds 111
worker 2 holds 11
worker 3 holds 16
sum: 249
""",
    "ping_pong": """\
pong has the ball after 1000 hits
ping 500 pong 500
""",
    "parameter_server": """\
loss at last, to that at first: 0.0000
y = 2.00 x + -1.00
""",
    "crawler": """\
pages: / /about /news /news/1 /news/2
broken: /gone
""",
    "data_loader": """\
trainer 0: 16 batches, sum 249500
trainer 1: 16 batches, sum 250000
complete: True
""",
    "replace_node": """\
step 0: 0 from hosts_0 hosts_1 hosts_2 hosts_3
step 1: 8 from hosts_0 hosts_1 hosts_2 hosts_3
lost hosts_1
step 2: 32 from hosts_0 spares_0 hosts_2 hosts_3
step 3: 72 from hosts_0 spares_0 hosts_2 hosts_3
""",
    "asyncio_client": """\
served: soup bread tea
ready: rice
ready: rice
ready: rice
the stew takes too long
still open: salad
""",
}


# On standard error.
SAID = {"replace_node": r"monarch: rank [23] of mesh 'trainer' .*until replace_node\('hosts_1'\)\n"}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", PRINTED)
def test_a_program_prints_its_result_and_nothing_else(name, tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "runtime")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stdout) == (0, PRINTED[name]), done.stderr
    assert re.fullmatch(SAID.get(name, ""), done.stderr), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_program_has_its_result_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} - OF_THEIR_OWN == set(PRINTED)


def outputs(cell):
    """What a cell printed and its value, without what differs from run to run."""
    printed = "".join(one["text"] for one in cell["outputs"] if one["output_type"] == "stream")
    values = [one["data"]["text/plain"] for one in cell["outputs"] if "data" in one]
    return [printed, *values]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("default")  # those of the notebook's own tools
def test_the_notebook_gives_what_it_was_saved_with(monkeypatch):
    client = pytest.importorskip("nbclient", reason="test group not installed: nbclient")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "runtime"))
    saved = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    run = nbformat.from_dict(saved)
    for cell in run.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.outputs = []
    client.NotebookClient(run, timeout=60, kernel_name="python3").execute()
    code = [cell for cell in saved.cells if cell.cell_type == "code"]
    again = [cell for cell in run.cells if cell.cell_type == "code"]
    assert [outputs(cell) for cell in again] == [outputs(cell) for cell in code]
    assert sum(outputs(cell) != [""] for cell in code) >= 5
