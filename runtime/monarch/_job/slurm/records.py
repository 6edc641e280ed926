"""What SLURM says of jobs: `squeue --json` in its old and new shapes, and `scontrol show job -o`.

Pure: text in, records out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

# States in which a job holds or may still get hosts; in all others it has ended.
WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
RUNNING = frozenset({"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"})
STARTING = frozenset({"CONFIGURING", "POWER_UP_NODE"})
CLEARING = "COMPLETING"  # has ended, and its hosts are not free yet

# Why a job waits that no time will change; letters and digits of the reason.
_NEVER = re.compile(
    r"partition(node|time)limit|badconstraints|invalid(account|qos)|(account|qos)notallowed"
    r"|dependencyneversatisfied|launchfailed.*|(qos|assoc)max.*perjob.*|qosmin.*"
)


class AnswerError(ValueError):
    """SLURM's answer is not one: it could not reach its controller, or has another shape."""


@dataclass(frozen=True, slots=True)
class Record:
    """A job, or a task of a job array.

    Attributes:
        job: its id; of a task, that of the array.
        tasks: task numbers that this stands for; empty where the job is no array.
        state: one word, as `RUNNING`.
        reason: why it waits or ended, as SLURM words it; empty where there is none.
        nodes: the hosts it has, as a compact list.
        restarts: how often SLURM has started it again.
        ended: how it ended, such as "exit code 1"; empty where unknown.

    """

    job: int
    tasks: tuple[int, ...] = ()
    state: str = ""
    reason: str = ""
    nodes: str = ""
    restarts: int = 0
    ended: str = ""

    @property
    def alive(self) -> bool:
        """Whether it has hosts or will get some."""
        return self.state in WAITING or self.running or self.state in STARTING

    @property
    def running(self) -> bool:
        """Whether it has its hosts, and its program may run."""
        return self.state in RUNNING

    @property
    def hopeless(self) -> bool:
        """Whether it waits for what cannot come."""
        reason = re.sub(r"[\W_]", "", self.reason).lower()
        return self.state in WAITING and _NEVER.fullmatch(reason) is not None


def of_squeue(text: str, wanted: frozenset[int]) -> list[Record]:
    """The records of these jobs in an answer of `squeue --json`, which may hold all of the cluster.

    Raises:
        AnswerError: the text says that squeue could not ask, or is no such answer.

    """
    try:
        document = json.loads(text)
        jobs = document["jobs"]
        errors = "; ".join(_error(one) for one in document.get("errors") or [])
        found = [_of_json(job) for job in jobs if _ids(job) & wanted]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise AnswerError(
            f"squeue --json gave what is no list of jobs ({type(error).__name__}: {error}): "
            f"{text[:200]!r}"
        ) from None
    if errors:
        raise AnswerError(errors)
    return found


def _error(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)
    parts = (one.get("source"), one.get("description"), one.get("error"))
    return ": ".join(str(part) for part in parts if part)


def _ids(job: dict[str, Any]) -> set[int]:
    return {_number(job.get("job_id")), _number(job.get("array_job_id"))}


def _of_json(job: dict[str, Any]) -> Record:
    array = _number(job.get("array_job_id"))
    listed = str(job.get("array_task_string") or "")
    task = job.get("array_task_id")
    tasks: tuple[int, ...] = ()
    if array:
        tasks = _tasks(listed) if listed or not _is_set(task) else (_number(task),)
    return Record(
        job=array or _number(job["job_id"]),
        tasks=tasks,
        state=_state(job["job_state"]),
        reason=_reason(str(job.get("state_reason") or "")),
        nodes=str(job.get("nodes") or ""),
        restarts=_number(job.get("restart_cnt")),
        ended=_exit(job.get("exit_code")),
    )


def _is_set(value: Any) -> bool:
    return bool(value.get("set")) if isinstance(value, dict) else value is not None


def _number(value: Any) -> int:
    """A number of either shape; 0 where it is not set."""
    if isinstance(value, dict):
        return int(value.get("number") or 0) if value.get("set") else 0
    return int(value or 0)


def _state(value: Any) -> str:
    """The one state of the words that are given: newer releases list it with its flags."""
    words = [value] if isinstance(value, str) else [str(word) for word in value]
    for known in (WAITING, STARTING):
        for word in words:
            if word in known and (known is not STARTING or len(words) == 1):
                return word
    if CLEARING in words:
        return CLEARING
    return words[0]


def _reason(text: str) -> str:
    return "" if text in {"None", "(null)", "N/A"} else text


def _exit(value: Any) -> str:
    if isinstance(value, dict):
        signal = value.get("signal")
        number = _number(signal.get("id", signal.get("signal_id"))) if signal else 0
        return _ended(_number(value.get("return_code")), number)
    status = _number(value)
    return _ended(status >> 8, status & 0x7F)


def _ended(code: int, signal: int) -> str:
    if signal:
        return f"signal {signal}"
    return f"exit code {code}" if code else ""


def _tasks(text: str) -> tuple[int, ...]:
    """Task numbers of `0-3,7`, `[0-3%2]` and `1-9:2`."""
    found: list[int] = []
    for part in text.strip("[]").partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part.strip())
        if match is None:
            raise AnswerError(f"{text!r} is no list of array tasks")
        low, high, step = match.groups()
        found += range(int(low), int(high or low) + 1, int(step or 1))
    return tuple(found)


_SCONTROL = {
    name: re.compile(rf"(?:^| ){pattern}")
    for name, pattern in {
        "job": r"JobId=(\d+)",
        "array": r"ArrayJobId=(\d+)",
        "tasks": r"ArrayTaskId=(\S+)",
        "state": r"JobState=(\S+)",
        "reason": r"Reason=(.*?) Dependency=",
        "nodes": r"NodeList=(\S*)",
        "restarts": r"Restarts=(\d+)",
        "ended": r"ExitCode=(\d+:\d+)",
    }.items()
}


def of_scontrol(text: str) -> list[Record]:
    """The records in an answer of `scontrol show job -o`.

    Raises:
        AnswerError: a line is none.

    """
    return [_of_line(line) for line in text.splitlines() if line.strip()]


def _of_line(line: str) -> Record:
    found = {name: pattern.search(line) for name, pattern in _SCONTROL.items()}
    values = {name: match[1] for name, match in found.items() if match is not None}
    if "job" not in values or "state" not in values:
        raise AnswerError(f"scontrol show job gave what is no job: {line[:200]!r}")
    code, _, signal = values.get("ended", "0:0").partition(":")
    array = int(values.get("array", 0))
    return Record(
        job=array or int(values["job"]),
        tasks=_tasks(values["tasks"]) if array and "tasks" in values else (),
        state=values["state"],
        reason=_reason(values.get("reason", "").replace("_", " ").strip()),
        nodes=_reason(values.get("nodes", "")),
        restarts=int(values.get("restarts", 0)),
        ended=_ended(int(code), int(signal)),
    )
