"""`SkyPilotJob`: each host a node of a cluster that SkyPilot launches."""

# ruff: noqa: SLF001 - meshes and other jobs are of the same package

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monarch._job import stored
from monarch._job.attached import EXPIRES, AttachedHosts
from monarch._job.counted import CountedMeshes
from monarch._job.job import JobState, JobTrait
from monarch._job.sky import waiting
from monarch._job.sky.client import Client
from monarch._job.sky.host import node_id
from monarch._job.sky.task import task, yaml
from monarch._job.sky.waiting import Host
from monarch._link import secret as secrets
from monarch._link.address import Address
from monarch.errors import JobError, LinkError, SecretError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from monarch._mesh.host_mesh import HostMesh, HostRef

_FOLDER = ".monarch/skypilot"
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")


class SkyPilotJob(CountedMeshes):
    """A job whose hosts are nodes that SkyPilot launches, on any cloud, Kubernetes or SLURM.

    Each host is a cluster of its own, so that one that is lost can be replaced. With `gang` all are
    the nodes of one cluster, which SkyPilot places together, and whose programs it ends together
    when one fails: none of them can be replaced.

    `apply()` asks for the clusters and returns; `state()` waits for the hosts, and says on stderr
    what for. A job that was not stored ends with this program; where that is killed, hosts end five
    minutes after the last program that used them, and `idle_minutes_to_autostop` then ends the
    clusters. Needs the package `skypilot`; the runtime has to be installed on the nodes, by their
    image or `setup_commands`. This program reaches the nodes by their internal addresses.

    Args:
        meshes: the number of hosts of each mesh, by name.
        resources: what a node has, as in a task of SkyPilot's ({"accelerators": "H200:8"}), or a
            `sky.Resources`. None for SkyPilot's default.
        cluster_name: the beginning of the clusters' names; None for one of the job's own.
        monarch_port: the port that a host listens on.
        idle_minutes_to_autostop: minutes without a running program after which SkyPilot stops a
            cluster by itself; None for never, as where it cannot do so.
        down_on_autostop: whether it removes the cluster then, in place of stopping it.
        python_exe: the interpreter on the nodes.
        setup_commands: shell commands that prepare a node, such as installing the runtime.
        workdir: a folder here that is copied to the nodes, and that hosts run in.
        file_mounts: more that is copied, by its path there.
        envs: variables of the hosts.
        gang: whether all hosts are one cluster.
        job_start_timeout: seconds to wait for all hosts; None to wait as long as it takes.

    """

    _transient = ("_attached", "_sky")
    _found = ("_name", "_folder", "_hosts", "_asked", "_complete")
    _resources: dict[str, Any]
    _cluster_name: str | None
    _port: int
    _idle_minutes: int | None
    _down_on_autostop: bool
    _python_exe: str
    _setup: str | None
    _workdir: str | None
    _file_mounts: dict[str, str]
    _envs: dict[str, str]
    _gang: bool
    _job_start_timeout: float | None
    _name: str | None
    _folder: str | None
    _hosts: dict[int, Host]
    _asked: list[str]  # clusters, to be ended even where they are no host's any more
    _complete: bool  # whether all hosts were there once

    def __init__(
        self,
        meshes: Mapping[str, int],
        resources: Any = None,
        cluster_name: str | None = None,
        monarch_port: int = 22222,
        idle_minutes_to_autostop: int | None = 10,
        down_on_autostop: bool = True,
        python_exe: str = "python",
        setup_commands: str | None = None,
        workdir: str | os.PathLike[str] | None = None,
        file_mounts: Mapping[str, str] | None = None,
        *,
        envs: Mapping[str, str] | None = None,
        gang: bool = False,
        job_start_timeout: float | None = None,
    ) -> None:
        super().__init__()
        self._meshes = {}
        for name, count in meshes.items():
            self.add_mesh(name, count)
        if cluster_name is not None and not _NAME.fullmatch(cluster_name):
            raise ValueError(
                f"cluster_name {cluster_name!r} has up to 40 lowercase letters, digits and -, a "
                "letter first"
            )
        if not isinstance(monarch_port, int) or not 0 < monarch_port < 65536:
            raise ValueError(f"monarch_port is 1 to 65535, not {monarch_port!r}")
        self._resources = _resources(resources)
        self._cluster_name = cluster_name
        self._port = monarch_port
        self._idle_minutes = idle_minutes_to_autostop
        self._down_on_autostop = down_on_autostop
        self._python_exe = python_exe
        self._setup = setup_commands if not setup_commands else setup_commands.rstrip("\n") + "\n"
        self._workdir = None if workdir is None else os.fspath(workdir)
        self._file_mounts = dict(file_mounts or {})
        self._envs = dict(envs or {})
        self._gang = gang
        self._job_start_timeout = job_start_timeout
        self._name = None
        self._folder = None
        self._hosts = {}
        self._asked = []
        self._complete = False
        self._attached = AttachedHosts()
        self._sky = Client()

    def tasks(self) -> dict[str, str]:
        """The task of each cluster as YAML, by the cluster's name, as SkyPilot is given it."""
        name = self._name or self._cluster_name or "monarch"
        folder = Path(self._folder or Path(_FOLDER, name).absolute())
        return {cluster: self._task(folder, cluster) for cluster in self._clusters(name)}

    def can_run(self, spec: JobTrait) -> bool:
        """Whether `spec` asks for the same, and all hosts of this job are there or will be."""
        if not isinstance(spec, SkyPilotJob) or spec._specification() != self._specification():
            return False
        try:
            return waiting.alive(self._sky, self._hosts)
        except JobError:
            return False

    def _clusters(self, name: str) -> list[str]:
        count = self._count
        return [name] if self._gang else [f"{name}-{rank}" for rank in range(count)]

    def _task(self, folder: Path, cluster: str) -> str:
        document = task(
            cluster,
            self._count if self._gang else 1,
            python=self._python_exe,
            port=self._port,
            lease=EXPIRES,
            secret=str(folder / "secret"),
            resources=self._resources,
            setup=self._setup,
            workdir=self._workdir,
            file_mounts=self._file_mounts,
            envs=self._envs,
        )
        return yaml(document)

    def _create(self, client_script: str | None) -> None:
        if client_script is not None:
            raise JobError("a SkyPilotJob runs no client program; run it on a node of its own")
        if not self._meshes:
            raise ValueError("the job has no mesh; add_mesh() gives it one")
        self._name = self._cluster_name or f"monarch-{os.urandom(4).hex()}"
        self._complete = False
        self._hosts, self._asked = {}, []
        self._attached = AttachedHosts()
        try:
            self._make_folder(Path(_FOLDER, self._name).absolute())
            for cluster in self._clusters(self._name):
                request = self._launch(cluster)
                count = self._count if self._gang else 1
                for index in range(count):
                    self._hosts[len(self._hosts)] = Host(cluster, index, request)
        except BaseException as error:
            self._give_up(error)
            raise
        atexit.register(self._at_exit, os.getpid())

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, mode=0o700)
            self._folder = str(folder)
            secrets.current().write(str(folder / "secret"))
        except FileExistsError:
            raise JobError(
                f"{folder} is there: a job of this name runs, or was not ended; end it by its "
                f"state file, or with: sky down '{folder.name}*', and remove the folder"
            ) from None
        except OSError as error:
            raise JobError(f"cannot make {folder}, the job's folder: {error.strerror}") from None

    def _launch(self, cluster: str) -> str:
        folder = self._there()
        path = folder / f"{cluster}.yaml"
        stored.save(path, self._task(folder, cluster).encode())
        self._asked.append(cluster)
        request: str = self._sky.ask(
            "launch",
            path=str(path),
            cluster=cluster,
            idle_minutes=self._idle_minutes,
            down=self._down_on_autostop and self._idle_minutes is not None,
        )
        return request

    def _state(self) -> JobState:
        try:
            self._share()
            meshes = self._reached(self._hosts)
        except (JobError, LinkError) as error:
            if not self._complete:
                self._give_up(error)
            raise
        self._complete = True
        return JobState(meshes)

    def _there(self) -> Path:
        if self._folder is None:
            raise JobError("the job has not been applied")
        return Path(self._folder)

    def _share(self) -> None:
        """See that this process has the secret of the hosts.

        Raises:
            JobError: it has another, or that of the job is gone.

        """
        try:
            secrets.share(secrets.read(str(self._there() / "secret")))
        except SecretError as error:
            raise JobError(f"the job's secret cannot be had: {error}") from None

    def _reached(self, hosts: Mapping[int, Host]) -> dict[str, HostMesh]:
        """The meshes of these hosts, once there are links to all of them."""
        title = f"SkyPilot job {self._name}"
        ips = waiting.wait(self._sky, hosts, self._job_start_timeout, title)
        found: dict[str, HostMesh] = {}
        refs: dict[int, HostRef] = {}
        for name, all_ranks in self._ranks().items():
            ranks = [rank for rank in all_ranks if rank in hosts]
            if ranks:
                addresses = [
                    (Address("tcp", host=ips[rank], port=self._port).url, self._node(rank))
                    for rank in ranks
                ]
                found[name] = self._attached.attach(name, addresses)
                self._attached.lease(found[name])
                refs |= zip(ranks, found[name]._refs(), strict=True)
        waiting.reach(self._sky, hosts, refs, title)
        return found

    def _node(self, rank: int) -> str:
        host = self._hosts[rank]
        return node_id(host.cluster, host.index, len(self._hosts) if self._gang else 1)

    def _replace(self, node_id: str) -> HostRef:
        if self._gang:
            raise JobError(
                f"host {node_id} cannot be replaced: SkyPilot ends the programs of all nodes of a "
                "cluster when one fails; without gang=True each host is a cluster of its own"
            )
        ranks = {self._node(rank): rank for rank in self._hosts}
        ranks |= {host.replaces: rank for rank, host in self._hosts.items() if host.replaces}
        if node_id not in ranks:
            known = ", ".join(self._node(rank) for rank in self._hosts)
            raise JobError(f"the job has no host {node_id!r} to replace; its hosts are {known}")
        rank = ranks[node_id]
        old = self._hosts[rank]
        cluster = f"{self._name}-{rank}-{old.generation + 1}"
        new = replace(
            old,
            cluster=cluster,
            request=self._launch(cluster),
            generation=old.generation + 1,
            replaces=node_id,
        )
        self._hosts[rank] = new
        with contextlib.suppress(JobError):  # the end of the job tries again, and says why
            self._end([old.cluster], [old.request])
        (mesh,) = self._reached({rank: new}).values()
        return mesh._refs()[0]

    def _keep(self) -> None:
        atexit.unregister(self._at_exit)
        self._attached.keep()

    def _kill(self) -> None:
        atexit.unregister(self._at_exit)
        self._attached.free()
        try:
            if self._asked:
                self._end(list(self._asked), sorted({one.request for one in self._hosts.values()}))
        finally:
            self._sky.close()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    def _end(self, clusters: Iterable[str], requests: Iterable[str]) -> None:
        """End clusters, and wait until SkyPilot has.

        Raises:
            JobError: some may still be there; they are named.

        """
        listed = list(clusters)
        try:
            left = self._sky.ask("down", names=listed, requests=list(requests))
        except JobError as error:
            left = dict.fromkeys(listed, str(error))
        ended = set(listed) - set(left)
        self._asked = [cluster for cluster in self._asked if cluster not in ended]
        if left:
            why = "; ".join(f"{name}: {text}" for name, text in left.items())
            raise JobError(
                f"clusters of this job may still be there ({why}); end them with: sky down -y "
                f"{' '.join(left)}"
            )

    def _at_exit(self, owner: int) -> None:
        if os.getpid() == owner:
            self._kill()

    def _wake(self) -> None:
        self._attached = AttachedHosts(kept=True)
        self._sky = Client()


def _resources(given: Any) -> dict[str, Any]:
    """As a mapping, of which a task's YAML is made."""
    found = given.to_yaml_config() if hasattr(given, "to_yaml_config") else given
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise TypeError(
            f"resources is a mapping such as {{'accelerators': 'H200:8'}} or a sky.Resources, not "
            f"{type(given).__name__}"
        )
    return {name: value for name, value in found.items() if not name.startswith("_")}
