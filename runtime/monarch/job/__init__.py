"""Jobs: where hosts come from, and how a program finds them again."""

from __future__ import annotations

from monarch._job.command import exec_command
from monarch._job.current import load_current_job, set_current_job
from monarch._job.from_config import hosts_from_config
from monarch._job.job import DEFAULT_JOB_PATH, JobState, JobTrait, job_load, job_loads
from monarch._job.local import LocalJob
from monarch._job.process import ProcessJob
from monarch._job.sky.job import SkyPilotJob
from monarch._job.slurm.job import SlurmJob
from monarch._job.ssh.job import SSHJob
from monarch.errors import JobError, JobStateError

__all__ = [
    "DEFAULT_JOB_PATH",
    "JobError",
    "JobState",
    "JobStateError",
    "JobTrait",
    "LocalJob",
    "ProcessJob",
    "SSHJob",
    "SkyPilotJob",
    "SlurmJob",
    "exec_command",
    "hosts_from_config",
    "job_load",
    "job_loads",
    "load_current_job",
    "set_current_job",
]
