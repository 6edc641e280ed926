"""Command lines of torchrun: what to run, and in how many processes on a host."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

_MODULES = ("torch.distributed.run", "torch.distributed.launch", "torchrun")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"torchrun: {message}")


def parse(command: Sequence[str]) -> tuple[list[str], int]:
    """The script with its arguments ("-m" first for a module), and the processes on the host.

    Takes `torchrun …`, `python -m torch.distributed.run …` and `python script …` (one process).

    Raises:
        ValueError: it is none of these, or asks for more than one host or for a number of
            processes that cannot be known here.

    """
    words = list(command)
    if not words:
        raise ValueError(
            "the command is empty; write ['torchrun', '--nproc-per-node=4', 'train.py']"
        )
    program = os.path.basename(words[0])  # noqa: PTH119 - a word of a command line
    if program in _MODULES:
        return _torchrun(words[1:])
    if program.startswith("python"):
        if words[1:2] == ["-m"] and words[2:3] and words[2] in _MODULES:
            return _torchrun(words[3:])
        if not words[1:] or words[1:] == ["-m"]:
            raise ValueError(f"{' '.join(words)} names no script")
        return words[1:], 1
    raise ValueError(
        f"a command starts with torchrun or python, this one with {words[0]!r}; to run any program "
        "on the hosts of a job, use exec_command"
    )


def _torchrun(words: list[str]) -> tuple[list[str], int]:
    found = _parser().parse_args(words)
    if found.nnodes.strip() not in {"1", "1:1"}:
        raise ValueError(
            f"--nnodes={found.nnodes} asks for more than this host: a command runs on one. For "
            "several, spawn SPMDActor on the hosts of a job"
        )
    if found.no_python or found.run_path:
        raise ValueError("--no-python and --run-path are not supported; run a script or -m module")
    if not found.script:
        raise ValueError("torchrun: no script was given")
    return [*(["-m"] if found.module else []), found.script, *found.arguments], _count(found.count)


def _count(text: str) -> int:
    if text == "cpu":
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(
            f"--nproc-per-node={text} cannot be known here: write a number, 1 or more, or cpu"
        )
    return int(text)


def _parser() -> _Parser:
    parser = _Parser(prog="torchrun", add_help=False, allow_abbrev=False)
    parser.add_argument("--nnodes", default="1")
    parser.add_argument("--nproc-per-node", "--nproc_per_node", dest="count", default="1")
    parser.add_argument("-m", "--module", action="store_true")
    parser.add_argument("--no-python", "--no_python", action="store_true")
    parser.add_argument("--run-path", "--run_path", action="store_true")
    parser.add_argument("--standalone", action="store_true")
    for name in (
        "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "max-restarts",
        "monitor-interval", "start-method", "role", "log-dir", "local-ranks-filter", "node-rank",
        "master-addr", "master-port", "local-addr",
    ):  # fmt: skip
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}")
    parser.add_argument("-r", "--redirects")
    parser.add_argument("-t", "--tee")
    parser.add_argument("script", nargs="?")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser
