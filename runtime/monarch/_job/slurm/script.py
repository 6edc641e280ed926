"""What SLURM is asked for: the options of sbatch, and the batch script."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monarch._job.local import CLIENT_VARIABLE
from monarch._proc.interpreter import command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CLIENT_LOG = "client.log"
_MODULE = "monarch._job.slurm.node"


@dataclass(frozen=True, slots=True)
class Resources:
    """What each host of a job is asked to have, in SLURM's terms."""

    partition: str | None = None
    time_limit: str | int | None = None
    ntasks_per_node: int = 1
    gpus_per_node: int | None = None
    cpus_per_task: int | None = None
    mem: str | int | None = None
    exclusive: bool = True
    account: str | None = None
    qos: str | None = None

    def options(self) -> list[str]:
        """As options of sbatch; what is None is the cluster's to choose."""
        given = {
            "partition": self.partition,
            "time": self.time_limit,
            "ntasks-per-node": self.ntasks_per_node,
            "gpus-per-node": self.gpus_per_node,
            "cpus-per-task": self.cpus_per_task,
            "mem": self.mem,
            "account": self.account,
            "qos": self.qos,
        }
        found = [f"--{name}={value}" for name, value in given.items() if value is not None]
        return [*found, "--exclusive"] if self.exclusive else found


def host_job(
    program: Sequence[str], folder: Path, rank: str, extra: Sequence[str] = ()
) -> tuple[list[str], str]:
    """Options and batch script of a job that has one host, and starts elsewhere when that fails.

    The host's program is all that it runs. `rank` names its log, and is `%a` in an array.
    """
    options = ["--nodes=1", "--requeue", *_output(folder, f"host-{rank}.log")]
    return options, _script([*program], extra)


def gang_job(
    program: Sequence[str], folder: Path, hosts: int, extra: Sequence[str] = ()
) -> tuple[list[str], str]:
    """Options and batch script of a job that has all hosts, and goes on without one that fails."""
    options = [f"--nodes={hosts}", "--no-kill", "--no-requeue", *_output(folder, "gang.log")]
    return options, _script([*_step(folder, hosts), *program], extra)


def batch_job(
    program: Sequence[str],
    folder: Path,
    hosts: int,
    client: Sequence[str],
    extra: Sequence[str] = (),
) -> tuple[list[str], str]:
    """Options and batch script of a job that has all hosts, and their client on the first.

    The job ends with the client, and as that did.
    """
    options = [f"--nodes={hosts}", "--no-kill", "--no-requeue", *_output(folder, CLIENT_LOG)]
    lines = [
        "#!/bin/sh",
        *(f"#SBATCH {option}" for option in extra),
        f"{shlex.join([*_step(folder, hosts), *program])} &",
        "hosts=$!",
        f"{CLIENT_VARIABLE}=1 {shlex.join(client)}",
        "status=$?",
        "kill $hosts 2>/dev/null",
        "wait $hosts",
        "exit $status",
        "",
    ]
    return options, "\n".join(lines)


def _step(folder: Path, hosts: int) -> list[str]:
    """The command that runs a program on each host of a job, and goes on without those lost."""
    return [
        *("srun", "--ntasks-per-node=1", f"--ntasks={hosts}", "--no-kill", "--wait=0"),
        *("--kill-on-bad-exit=0", "--input=none", "--open-mode=append", "--mpi=none"),
        f"--output={_escaped(folder)}/host-%t.log",
    ]


def host_program(
    python: str | None,
    folder: Path,
    listen: tuple[str, int],
    rank: str,
    generation: int,
    *,
    alone: bool,
) -> list[str]:
    """What a host runs. Without a `python`: this interpreter, with this package from where it is.

    `rank` is a number, or the variable in which a node finds it.
    """
    bind, port = listen
    company = "alone" if alone else "shared"
    arguments = (str(folder), bind, str(port), rank, str(generation), company)
    if python is not None:
        return [python, "-m", _MODULE, *arguments]
    return command(_MODULE, arguments=arguments)


def _output(folder: Path, name: str) -> list[str]:
    return ["--open-mode=append", f"--output={_escaped(folder)}/{name}"]


def _escaped(folder: Path) -> str:
    return str(folder).replace("%", "%%")


def _script(program: Sequence[str], extra: Sequence[str]) -> str:
    lines = ["#!/bin/sh", *(f"#SBATCH {option}" for option in extra)]
    return "\n".join([*lines, f"exec {shlex.join(program)}", ""])
