"""`serve`: a torchrun command as a job, whose ranks are actors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from monarch._job import torchrun
from monarch._job.elastic import SPMDActor
from monarch._job.job import JobState, JobTrait
from monarch._job.process import ProcessJob
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOCAL = ("local", "local_cwd")


class SPMDJob(JobTrait):
    """A torchrun command on one host, served by a worker of its own. Made by `serve`."""

    _script: list[str]
    _processes: int
    _workspace: str
    _hosts: ProcessJob

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._script, self._processes = torchrun.parse(command)
        self._workspace = os.getcwd()  # noqa: PTH109 - stored as text
        self._hosts = ProcessJob({"hosts": 1}, env)

    def run_spmd(self) -> None:
        """Run the script in all ranks, and wait until each has ended.

        Raises:
            ActorError: a rank's script raised, or ended with a status other than 0.
            SupervisionError: the process of a rank was lost.

        """
        hosts = self.state(cached_path=None).hosts
        procs = hosts.spawn_procs(per_host={"gpus": self._processes})
        try:
            actors: Any = procs.spawn("spmd", SPMDActor)
            first = actors.slice(hosts=0, gpus=0)
            address, port = first.get_host_port.call_one(None).get()
            actors.main.call(address, port, self._script).get()
        finally:
            procs.stop().get()

    def can_run(self, spec: JobTrait) -> bool:
        """Whether `spec` is the same command and its worker lives."""
        return (
            isinstance(spec, SPMDJob)
            and (spec._script, spec._processes) == (self._script, self._processes)  # noqa: SLF001 - of this class
            and self._hosts.can_run(spec._hosts)  # noqa: SLF001
        )

    def _create(self, client_script: str | None) -> None:
        self._hosts.apply(client_script)

    def _state(self) -> JobState:
        return self._hosts._state()  # noqa: SLF001 - a job as well

    def _kill(self) -> None:
        self._hosts.kill()

    def _keep(self) -> None:
        self._hosts._keep()  # noqa: SLF001


def serve(
    appdef: Sequence[str] | Any,
    scheduler: str = "local_cwd",
    scheduler_cfg: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> SPMDJob:
    """Start a host for a torchrun command; `run_spmd()` of the result runs it there.

    Args:
        appdef: the command, as `["torchrun", "--nproc-per-node=4", "train.py"]`.
        scheduler: "local_cwd" or "local": this host, in this folder.
        scheduler_cfg: None or empty; there is nothing to configure on this host.
        env: variables of the ranks, over those of this program.

    Raises:
        ValueError: the command cannot be read, or asks for more than one host.
        JobError: a torchx `AppDef`, or another scheduler, was given.

    """
    if isinstance(appdef, str) or not isinstance(appdef, (list, tuple)):
        raise JobError(
            f"serve() was given a {type(appdef).__name__}: definitions of torchx need torchx and "
            "its schedulers, for which this release has no extra; give a torchrun command as a "
            "list of words"
        )
    if scheduler not in _LOCAL:
        raise JobError(
            f"serve(scheduler={scheduler!r}) needs torchx and its schedulers, for which this "
            f"release has no extra; a command runs on this host: {' or '.join(_LOCAL)}"
        )
    if scheduler_cfg:
        raise JobError(
            f"serve(scheduler_cfg=…) has {', '.join(map(repr, scheduler_cfg))}; there is nothing "
            "to configure for a command on this host"
        )
    job = SPMDJob(appdef, env)
    job.apply()
    return job
