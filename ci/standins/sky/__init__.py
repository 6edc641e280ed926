"""A stand-in for SkyPilot's Python client: **not SkyPilot**. Clusters are processes here.

It has the calls that `monarch._job.sky.calls` makes, with the names, arguments and results that
release 0.14 has. The folder that `SKY_STANDIN` names holds its state and what a test asks of it:

- `fail.json`: by the name of a cluster, the error that its launch ends with;
- `held.json`: clusters whose launches stay pending, each with the message that SkyPilot would show;
- `late`: once it is there, `status` raises, as an API server does that is away.

A node is `bash -c` with the task's `run`, a home of its own where file mounts are copied to, and a
loopback address. Nothing is parsed by SkyPilot's schema: session `skypilot` does that.
"""

from __future__ import annotations

import enum
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

__version__ = "0.14 (stand-in)"
_HERE = Path(os.environ["SKY_STANDIN"])


class ClusterStatus(enum.Enum):
    """As `sky.ClusterStatus`."""

    INIT = "INIT"
    UP = "UP"


class JobStatus(enum.Enum):
    """As `sky.JobStatus`, as far as it comes to that."""

    RUNNING = "RUNNING"
    FAILED = "FAILED"
    SUCCEEDED = "SUCCEEDED"


class ResourcesUnavailableError(RuntimeError):
    """As `sky.exceptions` has it."""


class ClusterDoesNotExist(ValueError):  # noqa: N818 - SkyPilot's name
    """As `sky.exceptions` has it."""


class Task:
    """A task, read from YAML; nothing is checked."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @classmethod
    def from_yaml(cls, path: str) -> Task:
        """Read one from a file."""
        return cls(yaml.safe_load(Path(path).read_text(encoding="utf-8")))


def launch(
    task: Task,
    cluster_name: str,
    idle_minutes_to_autostop: int | None = None,
    down: bool = False,
) -> str:
    """Ask for a cluster; the id of the request."""
    record = {
        "task": task.document,
        "autostop": idle_minutes_to_autostop,
        "down": down,
        "ip": f"127.8.0.{len(list(_HERE.glob('*/record.json'))) + 1}",
    }
    folder = _HERE / cluster_name
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps(record), encoding="utf-8")
    return f"launch-{cluster_name}"


def api_status(request_ids: list[str]) -> list[SimpleNamespace]:
    """How requests stand."""
    found = []
    for one in request_ids:
        cluster = one.removeprefix("launch-")
        held, failed = _asked("held").get(cluster), _asked("fail").get(cluster)
        if not (_HERE / cluster / "record.json").exists():
            state = "CANCELLED"
        elif held is not None:
            state = "PENDING"
        elif failed is not None:
            state = "FAILED"
        else:
            _start(cluster)
            state = "SUCCEEDED"
        found.append(SimpleNamespace(request_id=one, status=state, status_msg=held))
    return found


def api_cancel(request_ids: list[str], silent: bool = False) -> Any:
    """Give up requests that have not ended."""
    return lambda: [one for one in request_ids if not silent or one]


def get(request: Any) -> Any:
    """The result of a request."""
    if callable(request):
        return request()
    cluster = str(request).removeprefix("launch-")
    raise ResourcesUnavailableError(_asked("fail").get(cluster, "it was cancelled"))


def status(cluster_names: list[str]) -> Any:
    """The clusters of these names that are there."""
    if (_HERE / "late").exists():
        raise ConnectionError("API server is not healthy")
    found = [_status(name) for name in cluster_names if (_HERE / name / "home").exists()]
    return lambda: found


def queue(cluster: str) -> Any:
    """The programs of a cluster."""

    def jobs() -> list[SimpleNamespace]:
        codes = [_code(node) for node in _nodes(cluster)]
        state = JobStatus.RUNNING if None in codes else JobStatus.SUCCEEDED
        if any(codes):  # SkyPilot ends all nodes of a cluster when one fails
            state = JobStatus.FAILED
        return [SimpleNamespace(job_id=1, status=state)]

    return jobs


def tail_logs(cluster: str, job_id: int, *, follow: bool, tail: int, output_stream: Any) -> int:
    """Write the end of a program's output to a stream."""
    assert job_id == 1  # noqa: S101 - of this stand-in
    assert not follow  # noqa: S101
    for node in _nodes(cluster):
        text = (node / "log").read_text(errors="replace")
        output_stream.write("\n".join(text.splitlines()[-tail:]))
    return 0


def down(cluster: str) -> Any:
    """End a cluster."""
    if not (_HERE / cluster / "record.json").exists():
        raise ClusterDoesNotExist(cluster)

    def ended() -> None:
        if cluster in _asked("stuck"):
            raise RuntimeError("the cloud does not answer")
        for node in _nodes(cluster):
            pid = int((node / "pid").read_text(encoding="ascii"))
            for number in (signal.SIGTERM, signal.SIGKILL):
                _signal(pid, number)
        shutil.rmtree(_HERE / cluster)

    return ended


def _asked(what: str) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads((_HERE / f"{what}.json").read_bytes())
    except FileNotFoundError:
        return {}
    return found


def _record(cluster: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_HERE / cluster / "record.json").read_bytes())
    return found


def _ips(record: dict[str, Any]) -> list[str]:
    head, _, last = record["ip"].rpartition(".")
    return [
        f"{head.removesuffix('.0')}.{last}.{i}" for i in range(1, record["task"]["num_nodes"] + 1)
    ]


def _status(cluster: str) -> SimpleNamespace:
    pairs = [(ip, None) for ip in _ips(_record(cluster))]
    handle = SimpleNamespace(stable_internal_external_ips=pairs)
    return SimpleNamespace(name=cluster, status=ClusterStatus.UP, handle=handle)


def _nodes(cluster: str) -> list[Path]:
    return sorted((_HERE / cluster).glob("node-*"))


def _code(node: Path) -> int | None:
    """The exit status of a node's program, None while it runs."""
    try:
        return int((node / "code").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None


def _start(cluster: str) -> None:
    """Start the nodes of a cluster that has none yet."""
    folder = _HERE / cluster
    if (folder / "home").exists():
        return
    record = _record(cluster)
    task, ips = record["task"], _ips(record)
    home = folder / "home"
    for there, here in task.get("file_mounts", {}).items():
        target = home / there.removeprefix("~/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(here, target)
    for rank in range(task["num_nodes"]):
        node = folder / f"node-{rank}"
        node.mkdir()
        variables = {
            "HOME": str(home),
            "SKYPILOT_NODE_RANK": str(rank),
            "SKYPILOT_NODE_IPS": "\n".join(ips),
            "SKYPILOT_NUM_NODES": str(len(ips)),
            **task.get("envs", {}),
        }
        script = f"({task.get('setup', '')}\n{task['run']})\necho $? > {node}/code"
        with (node / "log").open("wb") as log:
            program = subprocess.Popen(
                ["bash", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **variables},
                start_new_session=True,
            )
        (node / "pid").write_text(str(program.pid), encoding="ascii")


def _signal(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(f"{__doc__}")
