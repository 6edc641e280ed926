"""SPMD programs: variables from the place in a mesh, torchrun commands as jobs."""

from __future__ import annotations

import asyncio
import os

import pytest

from monarch._job import torchrun
from monarch.actor import Actor, ActorError, endpoint, this_host
from monarch.errors import JobError
from monarch.job.spmd import serve
from monarch.spmd import SPMDActor, setup_torch_elastic_env, setup_torch_elastic_env_async
from monarch.tools.network import AddrType

_NAMES = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
    "ROLE_RANK", "ROLE_WORLD_SIZE",
)  # fmt: skip


class Variables(Actor):
    @endpoint
    def get(self, *names: str) -> list[str | None]:
        return [os.environ.get(name) for name in names]


@pytest.fixture
def procs():
    made = this_host().spawn_procs(per_host={"nodes": 2, "gpus": 2})
    yield made
    made.stop().get(30)


def test_each_rank_finds_its_place(procs):
    setup_torch_elastic_env(procs, master_addr="here", master_port=29500)
    variables = procs.spawn("variables", Variables)
    found = list(variables.get.call(*_NAMES).get(60).values())
    assert found == [
        [str(value) for value in (rank, 4, rank % 2, 2, rank // 2, 2, rank, 4)] for rank in range(4)
    ]
    masters = variables.get.call("MASTER_ADDR", "MASTER_PORT").get(60)
    assert {tuple(master) for master in masters.values()} == {("here", "29500")}


def test_rank_0_gives_the_meeting_point_where_none_is_given(procs):
    asyncio.run(setup_torch_elastic_env_async(procs, use_ipaddr=AddrType.IPv4))
    variables = procs.spawn("variables", Variables)
    ((address, port),) = {
        tuple(found) for found in variables.get.call("MASTER_ADDR", "MASTER_PORT").get(60).values()
    }
    assert address.count(".") == 3
    assert 0 < int(port) < 65536


def test_a_single_process_is_rank_0_of_1():
    procs = this_host().spawn_procs()
    setup_torch_elastic_env(procs)
    found = procs.spawn("variables", Variables).get.call_one(*_NAMES).get(60)
    assert found == ["0", "1", "0", "1", "0", "1", "0", "1"]
    procs.stop().get(30)


def test_commands_are_run_with_their_variables(procs):
    actors = procs.spawn("spmd", SPMDActor)
    assert all(actors.run_command.call("sh", ["-c", "test $A = 1"], {"A": "1"}).get(60).values())
    with pytest.raises(ActorError, match="exit status 1"):
        actors.run_command.call("false", [], {}).get(60)
    with pytest.raises(ActorError, match="no script to run"):
        actors.main.call("localhost", 1, []).get(60)


_SCRIPT = """
import os, sys
from helper import word
with open(sys.argv[1] + "/" + os.environ["RANK"], "w") as file:
    file.write(" ".join([word, os.environ["WORLD_SIZE"], os.environ["MASTER_PORT"], *sys.argv[2:]]))
if "fail" in sys.argv:
    sys.exit(3)
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "helper.py").write_text("word = 'imported'\n", encoding="utf-8")
    path = tmp_path / "train.py"
    path.write_text(_SCRIPT, encoding="utf-8")
    return path


def test_a_torchrun_command_runs_in_every_rank(script, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    job = serve(
        ["torchrun", "--nproc-per-node=3", "--standalone", str(script), str(out), "--lr", "1"]
    )
    try:
        job.run_spmd()
    finally:
        job.kill()
    found = [(out / str(rank)).read_text().split() for rank in range(3)]
    assert [(one[0], one[1], one[3:]) for one in found] == [("imported", "3", ["--lr", "1"])] * 3
    assert len({one[2] for one in found}) == 1


def test_a_script_that_fails_is_told_with_its_rank(script, tmp_path):
    job = serve(["python", str(script), str(tmp_path), "fail"])
    try:
        with pytest.raises(ActorError, match=r"rank 0: .*ended with status 3"):
            job.run_spmd()
    finally:
        job.kill()


_TAIL = ["--nnodes", "8"]


@pytest.mark.parametrize(
    ("command", "script", "count"),
    [
        ("torchrun train.py", ["train.py"], 1),
        ("torchrun --nproc_per_node 4 train.py -x", ["train.py", "-x"], 4),
        ("torchrun --nnodes=1:1 --nproc-per-node=2 -m p.t --nnodes 8", ["-m", "p.t", *_TAIL], 2),
        ("python -m torch.distributed.run --standalone t.py", ["t.py"], 1),
        ("/usr/bin/python3.12 -m torchrun t.py", ["t.py"], 1),
        ("python t.py --nproc-per-node=7", ["t.py", "--nproc-per-node=7"], 1),
        ("python -m pkg.t a", ["-m", "pkg.t", "a"], 1),
        ("torchrun --nproc-per-node=cpu t.py", ["t.py"], os.cpu_count()),
    ],
)  # fmt: skip
def test_commands_are_read_as_torchrun_reads_them(command, script, count):
    assert torchrun.parse(command.split()) == (script, count)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "empty"),
        ("torchrun", "no script"),
        ("torchrun --nproc-per-node=gpu t.py", "write a number"),
        ("torchrun --nproc-per-node=0 t.py", "write a number"),
        ("torchrun --nnodes=2 t.py", "more than this host"),
        ("torchrun --no-python prog", "not supported"),
        ("torchrun --wrong-option=1 t.py", "torchrun: "),
        ("python", "names no script"),
        ("bash x.sh", "exec_command"),
    ],
)
def test_commands_that_cannot_be_run_are_refused(command, said):
    with pytest.raises(ValueError, match=said):
        serve(command.split())


def test_what_needs_torchx_is_refused_with_the_reason():
    with pytest.raises(JobError, match="torchx"):
        serve(object())
    with pytest.raises(JobError, match="torchx"):
        serve(["torchrun", "t.py"], scheduler="slurm")
    with pytest.raises(JobError, match="nothing to configure"):
        serve(["torchrun", "t.py"], scheduler_cfg={"a": 1})
