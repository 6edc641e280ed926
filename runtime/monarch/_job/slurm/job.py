"""`SlurmJob`: each host a node that SLURM gives."""

# ruff: noqa: SLF001 - meshes and other jobs are of the same package

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from monarch._job import gateway
from monarch._job.attached import AttachedHosts
from monarch._job.counted import CountedMeshes
from monarch._job.job import DEFAULT_JOB_PATH, JobState, JobTrait, by_name
from monarch._job.local import BatchJob
from monarch._job.slurm import ending, script, waiting
from monarch._job.slurm.commands import submit
from monarch._job.slurm.folder import JobFolder, Place
from monarch._job.slurm.lease import Lease
from monarch._job.slurm.script import Resources
from monarch._job.tunnel import Tunnels
from monarch._link.address import parse
from monarch.errors import JobError, JobStateError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from monarch._job.slurm.folder import Arrival
    from monarch._mesh.host_mesh import HostMesh, HostRef

_LOGS = ".monarch/slurm"


class SlurmJob(CountedMeshes):
    """A job whose hosts are nodes that SLURM gives.

    Each host is a SLURM job of its own (one job array), which SLURM starts again on another node
    when its node fails, so that a host that is lost costs no other. With `gang` all are one SLURM
    job, for sites that give nodes together only; it goes on without a node that fails, and
    `replace_node` gets one more by a job of its own.

    `apply()` submits and returns; `state()` waits for the nodes, and says on stderr what for. A
    job that was not stored ends with this program, within two minutes if that is killed.

    `apply(client_script=…)` submits hosts and a Python program as one SLURM job: the program runs
    on the first node, finds its hosts by `state()`, and the job ends when it does, with its status.

    Args:
        meshes: the number of hosts of each mesh, by name.
        python_exe: the interpreter on the nodes; None for this one, with this package from where
            it is.
        slurm_args: more options of sbatch, such as "--constraint=h200".
        monarch_port: the port a host listens on; 0 for any that is free.
        job_name: what squeue shows.
        ntasks_per_node: tasks that a node is asked to have room for.
        time_limit: as sbatch has it; None for the cluster's own.
        partition: where to submit; None for the cluster's default.
        log_dir: where the job's folder is made, with what the hosts print; it must be one that
            this machine and the nodes share. None for `.monarch/slurm`, and no log is kept.
        exclusive: whether a node is this job's alone.
        gpus_per_node: GPUs of a node; None to ask for none.
        cpus_per_task: CPUs of a task.
        mem: memory of a node, as sbatch has it.
        job_start_timeout: seconds to wait for all hosts; None to wait as long as it takes.
        account: whom the cluster charges.
        qos: the quality of service to ask for.
        bind_to: the IP address that a host listens on; None for the one that this machine reaches.
        out_of_cluster: whether this machine, which has SLURM's commands and the shared folder, has
            no way to the nodes. Links then go through `attach_to`.
        attach_to: what `ssh` takes for a machine that reaches the nodes, as "user@gateway". Or the
            address of one host of the cluster, by way of which all others are reached, as by
            `monarch.actor.attach`; on loopback, where a forward to its port begins.
        gang: whether all hosts are one SLURM job.
        munge: whether munge seals the secret in the job's folder, for this user on machines of the
            cluster alone; else the folder's mode keeps it.

    """

    _transient = ("_lease", "_attached", "_tunnels")
    _found = ("_folder", "_submitted", "_complete", "_batch")
    _python_exe: str | None
    _slurm_args: list[str]
    _port: int
    _job_name: str
    _resources: Resources
    _log_dir: str | None
    _job_start_timeout: float | None
    _bind_to: str | None
    _gang: bool
    _gateway: str | None  # what ssh takes
    _entrance: str  # the address of a host, in place of it
    _munge: bool
    _batch: bool  # whether its client runs in the allocation
    _folder: str | None
    _submitted: list[str]  # SLURM jobs, to be ended even where there is no plan
    _complete: bool  # whether all hosts were there once

    def __init__(
        self,
        meshes: Mapping[str, int],
        python_exe: str | None = None,
        slurm_args: Sequence[str] = (),
        monarch_port: int = 22222,
        job_name: str = "monarch_job",
        ntasks_per_node: int = 1,
        time_limit: str | None = None,
        partition: str | None = None,
        log_dir: str | os.PathLike[str] | None = None,
        exclusive: bool = True,
        gpus_per_node: int | None = None,
        cpus_per_task: int | None = None,
        mem: str | None = None,
        job_start_timeout: float | None = None,
        account: str | None = None,
        qos: str | None = None,
        out_of_cluster: bool = False,
        attach_to: str | None = None,
        *,
        bind_to: str | None = None,
        gang: bool = False,
        munge: bool = False,
    ) -> None:
        super().__init__()
        self._meshes = {}
        for name, count in by_name("SlurmJob", "meshes", meshes, '{"workers": 2}').items():
            self.add_mesh(name, count)
        if not re.fullmatch(r"[\w.-]{1,64}", job_name, re.ASCII):
            raise ValueError(f"job_name {job_name!r} has up to 64 letters, digits and _.-")
        for argument in slurm_args:
            if not argument.startswith("-") or "\n" in argument:
                raise ValueError(f"slurm_args has {argument!r}, which is no option of sbatch")
        if not isinstance(monarch_port, int) or not 0 <= monarch_port < 65536:
            raise ValueError(f"monarch_port is 0 to 65535, not {monarch_port!r}")
        if out_of_cluster != (attach_to is not None) or (attach_to or "x").startswith("-"):
            raise ValueError(
                f"out_of_cluster={out_of_cluster} and attach_to={attach_to!r}: give both, "
                "attach_to as the machine that ssh goes through, or the address of a host, or none"
            )
        self._python_exe = python_exe
        self._slurm_args = list(slurm_args)
        self._port = monarch_port
        self._job_name = job_name
        self._resources = Resources(
            partition=partition,
            time_limit=time_limit,
            ntasks_per_node=ntasks_per_node,
            gpus_per_node=gpus_per_node,
            cpus_per_task=cpus_per_task,
            mem=mem,
            exclusive=exclusive,
            account=account,
            qos=qos,
        )
        self._log_dir = None if log_dir is None else os.fspath(log_dir)
        self._job_start_timeout = job_start_timeout
        self._bind_to = bind_to
        self._gang = gang
        self._gateway = attach_to
        self._entrance = ""
        if attach_to is not None and "://" in attach_to:
            others = 'a machine that ssh goes through, as "user@gateway"'
            self._gateway, self._entrance = None, gateway.entrance(attach_to, others)
        self._munge = munge
        self._batch = False
        self._folder = None
        self._submitted = []
        self._complete = False
        self._lease: Lease | None = None
        self._attached = AttachedHosts()
        self._tunnels = Tunnels()

    @property
    def nodes(self) -> dict[str, str]:
        """The node that each host is on, by the host's id, in the order of the meshes.

        Raises:
            JobError: the job does not run.

        """
        running = self._running
        if not isinstance(running, SlurmJob):
            raise JobError("the job has no nodes before apply()")
        arrivals = running._there().arrivals(running._places())
        return {arrivals[rank].name: arrivals[rank].node for rank in sorted(arrivals)}

    def share_node(self, tasks_per_node: int, gpus_per_task: int, partition: str) -> None:
        """Ask for a part of each node, and leave the rest to other jobs."""
        self._resources = replace(
            self._resources,
            partition=partition,
            ntasks_per_node=tasks_per_node,
            gpus_per_node=tasks_per_node * gpus_per_task,
            exclusive=False,
        )

    def can_run(self, spec: JobTrait) -> bool:
        """Whether `spec` asks for the same, and all hosts of this job have or will get a node."""
        if not isinstance(spec, SlurmJob) or spec._specification() != self._specification():
            return False
        try:
            return not waiting.lost(self._there(), self._places())
        except JobError:
            return False

    def _create(self, client_script: str | None) -> None:
        if not self._meshes:
            raise ValueError("the job has no mesh; add_mesh() gives it one")
        if self._entrance and client_script is None:
            gateway.needed(self._entrance)  # before there are jobs of SLURM's
        base = Path(self._log_dir or _LOGS).absolute()
        self._folder = str(base / f"{self._job_name}-{os.urandom(4).hex()}")
        folder = self._there()
        folder.make(sealed=self._munge)
        self._batch = client_script is not None
        try:
            if client_script is not None:
                folder.keep()
                BatchJob(self).dump(DEFAULT_JOB_PATH)  # the client may run before this returns
            self._submit(folder, client_script)
        except BaseException:
            folder.remove(logs=True)
            self._folder = None
            raise
        if not self._batch:
            self._lease = Lease(folder, self.kill)

    def _submit(self, folder: JobFolder, client_script: str | None) -> None:
        hosts = self._count
        if client_script is not None:
            program = self._program(folder, "SLURM_PROCID", 0)
            client = [self._python_exe or sys.executable, client_script]
            options, text = script.batch_job(program, folder.path, hosts, client, self._slurm_args)
        elif self._gang:
            program = self._program(folder, "SLURM_PROCID", 0)
            options, text = script.gang_job(program, folder.path, hosts, self._slurm_args)
        else:
            program = self._program(folder, "SLURM_ARRAY_TASK_ID", 0)
            options, text = script.host_job(program, folder.path, "%a", self._slurm_args)
            options.append(f"--array=0-{hosts - 1}")
        # A host that starts before there is a plan waits for it.
        job = submit(text, [*self._options(), *options])
        self._submitted = [f"{job}"]
        names = [
            f"{job}" if self._gang or client_script is not None else f"{job}_{rank}"
            for rank in range(hosts)
        ]
        try:
            folder.plan({rank: Place(name) for rank, name in enumerate(names)})
        except BaseException:
            ending.cancel([f"{job}"])
            raise

    def _options(self) -> list[str]:
        return [f"--job-name={self._job_name}", *self._resources.options()]

    def _program(self, folder: JobFolder, rank: str, generation: int) -> list[str]:
        listen = (self._bind_to or "", self._port)
        return script.host_program(
            self._python_exe,
            folder.path,
            listen,
            rank,
            generation,
            alone=self._resources.exclusive,
        )

    def _state(self) -> JobState:
        folder = self._there()
        try:
            arrivals = waiting.wait(folder, self._places(), self._job_start_timeout)
        except JobError as error:
            if not self._complete:
                self._give_up(error)
            raise
        self._complete = True
        folder.share()
        if self._entrance and not self._batch:
            at = parse(arrivals[0].address)
            gateway.enter(
                self._entrance,
                lambda port: f"ssh -N -L {port}:{_bracketed(at.host)}:{at.port} user@gateway",
            )
        return JobState(
            {
                name: self._attach(name, [arrivals[rank] for rank in ranks])
                for name, ranks in self._ranks().items()
            }
        )

    def _attach(self, name: str, arrivals: Sequence[Arrival]) -> HostMesh:
        if self._gateway is not None and not self._batch:
            urls = {one.address: parse(one.address).dial for one in arrivals}
            targets = {at.url: f"{_bracketed(at.host)}:{at.port}" for at in urls.values()}
            self._tunnels.open(self._gateway, targets)
        return self._attached.attach(name, [(one.address, one.name) for one in arrivals])

    def _replace(self, node_id: str) -> HostRef:
        folder, places = self._there(), self._places()
        rank = waiting.rank_of(node_id, folder, places)
        old = places[rank]
        gone = folder.arrivals(places).get(rank)
        generation = old.generation + 1
        program = self._program(folder, str(rank), generation)
        options, text = script.host_job(program, folder.path, str(rank), self._slurm_args)
        if gone is not None:
            options.append(f"--exclude={gone.node}")
        job = submit(text, [*self._options(), *options])
        self._submitted.append(f"{job}")
        places[rank] = Place(f"{job}", generation, node_id)
        try:
            folder.plan(places)  # from now on the old one ends by itself
            if not ending.shared(old, places):
                ending.cancel([old.job])
            arrivals = waiting.wait(folder, {rank: places[rank]}, self._job_start_timeout)
        except BaseException:
            ending.cancel([f"{job}"])
            raise
        (name,) = (name for name, ranks in self._ranks().items() if rank in ranks)
        return self._attach(name, [arrivals[rank]])._refs()[0]

    def _there(self) -> JobFolder:
        if self._folder is None:
            raise JobError("the job has not been applied")
        return JobFolder(self._folder)

    def _places(self) -> dict[int, Place]:
        try:
            return self._there().planned()
        except JobStateError:
            raise
        except OSError as error:
            raise JobError(
                f"the job's folder {self._folder} has no plan to read ({error}): it was ended, or "
                "the folder removed; squeue shows whether SLURM has jobs of it"
            ) from None

    def _keep(self) -> None:
        """Let the hosts outlive this program."""
        if self._lease is not None:
            self._lease.drop()
            self._lease = None
        if self._folder is not None:
            self._there().keep()

    def _kill(self) -> None:
        if self._lease is not None:
            self._lease.drop()
            self._lease = None
        if self._folder is None:
            return
        self._attached.free()
        self._tunnels.close()
        folder = self._there()
        try:
            jobs = [place.job for place in self._places().values()]
        except JobError:
            jobs = []
            ending.cancel(self._submitted)
        folder.remove(logs=self._log_dir is None and not self._batch)
        self._folder = None
        if self._batch and os.environ.get("SLURM_JOB_ID") in jobs:
            return  # this is the client: the allocation ends with it
        ending.end(jobs)

    def _wake(self) -> None:
        self._lease = None
        self._attached = AttachedHosts(kept=True)
        self._tunnels = Tunnels()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
