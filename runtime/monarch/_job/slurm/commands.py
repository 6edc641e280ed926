"""SLURM's commands: submit, look, cancel. What they answer is read by `records`."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from monarch._job.slurm.records import AnswerError, Record, of_scontrol, of_squeue
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SECONDS = 60.0  # that a command may take; a busy controller answers late
# What a user sets for the commands themselves. Every other SLURM_* variable belongs to the
# allocation that this program may run in, and would make the job a part or a copy of it.
_KEPT = frozenset(
    {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_TIME_FORMAT"}
)
_FOREIGN = ("SLURM_", "SLURMD_", "SBATCH_CPU_BIND", "SBATCH_MEM_BIND", "PMI_", "PMIX_")
_OURS = ("MONARCH_SECRET_FD", "MONARCH_PROC_FDS")  # descriptors of this process
_NO_SUCH_JOB = "Invalid job id"


class NotAnsweredError(JobError):
    """SLURM could not be asked just now; its jobs may be well."""


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """The variables for SLURM's commands, and so for the jobs: without those of an allocation."""
    return {
        name: value
        for name, value in own.items()
        if name in _KEPT or (not name.startswith(_FOREIGN) and name not in _OURS)
    }


def submit(script: str, options: Sequence[str]) -> int:
    """Submit a batch script; the id of the job.

    Raises:
        JobError: SLURM refuses it, with what SLURM says.

    """
    answer = _run(["sbatch", "--parsable", "--export=ALL", *options], script)
    if answer.returncode != 0:
        raise JobError(f"SLURM refuses the job: {_said(answer)}")
    match = re.search(r"(?m)^(\d+)(;\S+)?$", answer.stdout.strip())
    if match is None:
        raise JobError(
            f"sbatch --parsable gave no job id but {answer.stdout[:200]!r}; if it started a job, "
            "scancel ends it"
        )
    return int(match[1])


def look(names: Iterable[str]) -> dict[str, Record]:
    """What SLURM knows of these jobs (`12`) and tasks (`12_3`), those that ended lately included.

    What squeue does not list is asked for by its id, so that one empty answer ends nothing; what
    neither knows is not in the result.

    Raises:
        NotAnsweredError: SLURM does not answer, or not in a way that can be read.

    """
    wanted = {name: (int(job), task) for name in names for job, _, task in [name.partition("_")]}
    found = _by_name(_squeue(frozenset(job for job, _ in wanted.values())))
    for job in sorted({wanted[name][0] for name in wanted if name not in found}):
        found = {**_by_name(_scontrol(job)), **found}
    return {name: found[name] for name in wanted if name in found}


def _by_name(records: Iterable[Record]) -> dict[str, Record]:
    found = {}
    for record in records:
        for task in record.tasks or [None]:
            found[f"{record.job}" if task is None else f"{record.job}_{task}"] = record
    return found


def cancel(jobs: Sequence[str], *options: str) -> None:
    """End jobs (`12`) or tasks of arrays (`12_3`); those that have ended are left alone.

    Raises:
        NotAnsweredError: SLURM does not take the order.

    """
    if not jobs:
        return
    answer = _run(["scancel", *options, *jobs])
    if answer.returncode != 0 and _NO_SUCH_JOB not in answer.stderr:
        raise NotAnsweredError(f"scancel {' '.join(jobs)}: {_said(answer)}")


def _squeue(wanted: frozenset[int]) -> list[Record]:
    """Records by `squeue --json`; none where that squeue has no such option or is unreadable."""
    answer = _run(["squeue", "--json"])
    if answer.returncode != 0:
        return []
    try:
        return of_squeue(answer.stdout, wanted)
    except AnswerError:
        return []


def _scontrol(job: int) -> list[Record]:
    answer = _run(["scontrol", "show", "job", "-o", str(job)])
    if answer.returncode != 0:
        if _NO_SUCH_JOB in answer.stderr:
            return []
        raise NotAnsweredError(f"SLURM does not answer: {_said(answer)}")
    try:
        return of_scontrol(answer.stdout)
    except AnswerError as error:
        raise NotAnsweredError(str(error)) from None


def _run(command: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            input=stdin,
            env=environment(os.environ),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=SECONDS,
        )
    except FileNotFoundError:
        raise JobError(
            f"{command[0]} is not on this machine's PATH; a SlurmJob is started where SLURM's "
            "client commands are (Debian: apt-get install slurm-client)"
        ) from None
    except subprocess.TimeoutExpired:
        raise NotAnsweredError(
            f"{command[0]} has not answered for {SECONDS:.0f} s; is SLURM's controller well?"
        ) from None


def _said(answer: subprocess.CompletedProcess[str]) -> str:
    """What a command that failed says, in one line."""
    lines = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
    said = "; ".join(re.sub(r"^\w+: (error|fatal): ", "", line) for line in lines)
    return said[:1000] or f"status {answer.returncode} and no word"
