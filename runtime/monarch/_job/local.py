"""`LocalJob`: hosts that are all this one, and programs run as the client of a job."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from monarch._job.job import DEFAULT_JOB_PATH, JobState, JobTrait

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENT_VARIABLE = "MONARCH_BATCH_JOB"  # set for a program that runs as the client of a job


class LocalJob(JobTrait):
    """A job whose meshes are all this host: `this_host()` under the name of each.

    Stands in for a larger job while a program is written. `apply(client_script=…)` runs a program
    with this job in a process of its own, with its output under `.monarch/logs`.
    """

    _transient = ("_process",)
    _host_names: tuple[str, ...]
    _log_dir: str | None

    def __init__(self, hosts: Sequence[str] = ("hosts",)) -> None:
        super().__init__()
        listed = hosts if isinstance(hosts, (list, tuple)) else (None,)
        if not all(isinstance(name, str) for name in listed):
            raise TypeError(f'LocalJob takes the names of meshes, as ("trainers",), not {hosts!r}')
        self._host_names = tuple(hosts)
        self._process: subprocess.Popen[bytes] | None = None
        self._log_dir = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The program that `apply(client_script=…)` started.

        Raises:
            ValueError: none was.

        """
        if self._process is None:
            raise ValueError("this job runs no client program: apply(client_script=…) starts one")
        return self._process

    def can_run(self, spec: JobTrait) -> bool:  # noqa: ARG002 - of every job
        """False: this host is always there, and the names are those of the new specification."""
        return False

    def _state(self) -> JobState:
        from monarch._mesh.here import this_host  # noqa: PLC0415 - starts nothing until it is used

        return JobState({name: this_host() for name in self._host_names})

    def _create(self, client_script: str | None) -> None:
        if client_script is None:
            return
        BatchJob(self).dump(DEFAULT_JOB_PATH)
        logs = Path(DEFAULT_JOB_PATH).parent / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        self._log_dir = tempfile.mkdtemp(prefix="job_", dir=logs)
        folder = Path(self._log_dir)
        with (folder / "stdout.log").open("wb") as out, (folder / "stderr.log").open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, client_script],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, CLIENT_VARIABLE: "1"},
                start_new_session=True,
            )

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def _wake(self) -> None:
        self._process = None


class BatchJob(JobTrait):
    """A job as its own client program finds it: it can run whatever that program asks for."""

    _job: JobTrait

    def __init__(self, job: JobTrait) -> None:
        super().__init__()
        self._job = job

    def can_run(self, spec: JobTrait) -> bool:  # noqa: ARG002 - of every job
        """Whether this is the client program of a job; the job then ends with it."""
        found = CLIENT_VARIABLE in os.environ
        if found:
            atexit.register(self._kill)
        return found

    @property
    def _running(self) -> JobTrait:
        return self

    def _state(self) -> JobState:
        return self._job._state()  # noqa: SLF001 - a job as well

    def _create(self, client_script: str | None) -> None:
        self._job._create(client_script)  # noqa: SLF001

    def _kill(self) -> None:
        self._job._kill()  # noqa: SLF001
