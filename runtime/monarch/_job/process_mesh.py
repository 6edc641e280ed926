"""`ProcessMesh`: processes on the hosts of a job of their own, wherever that job gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monarch._job.replacing import HOSTS, SPARES, ReplacingMesh

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from monarch._job.kube.spec import ImageSpec, KubeConfig
    from monarch._restart import Restart


class ProcessMesh(ReplacingMesh):
    """Processes on all hosts of a job, with the dimensions "hosts" and "gpus".

    A `ProcMesh` that brings its hosts along: `spawn` gives actors, and when a node is lost,
    `replace_node` puts another host in its place. It owns the job, which ends with `stop()` or with
    the program. Slices are plain `ProcMesh`es.
    """

    @classmethod
    def local(
        cls,
        hosts: int = 1,
        gpus_per_host: int = 1,
        spares: int = 0,
        *,
        env: Mapping[str, str] | None = None,
        spare_procs: int = 0,
        name: str | None = None,
        bootstrap: Callable[[], Any] | None = None,
        restart: Restart | None = None,
    ) -> Self:
        """Hosts that are host agents on this machine, to try programs on.

        Args:
            hosts: their number.
            gpus_per_host: processes on each.
            spares: hosts that stand by for one that is lost.
            env: variables of the hosts and their processes, over those of this program.
            spare_procs: processes that stand by on each host; a spare host has as many standing by
                as it would have to run.
            name: how messages call the processes.
            bootstrap: called in each process before its first actor; may be `async`.
            restart: how processes that die start again by themselves, and nodes that are lost are
                replaced; without it, `replace_node` does that.

        Raises:
            ValueError: a number is not positive.

        """
        from monarch._job.process import ProcessJob  # noqa: PLC0415 - of this kind of job only

        job = ProcessJob(_meshes("local", hosts, gpus_per_host, spares), env)
        return cls(job, hosts, gpus_per_host, spares, spare_procs, name, bootstrap, restart)

    @classmethod
    def from_slurm(
        cls,
        nodes: int = 1,
        gpus_per_node: int = 1,
        spares: int = 0,
        *,
        spare_procs: int = 0,
        name: str | None = None,
        bootstrap: Callable[[], Any] | None = None,
        restart: Restart | None = None,
        **options: Any,
    ) -> Self:
        """Nodes from SLURM; waits until they are there.

        Args:
            nodes: their number.
            gpus_per_node: GPUs to ask for on each node, and processes on it.
            spares: nodes more, that stand by.
            spare_procs: as in `local`.
            name: as in `local`.
            bootstrap: as in `local`.
            restart: as in `local`.
            options: more of `SlurmJob`, as `partition` or `time_limit`. A node listens on any free
                port unless `monarch_port` says otherwise.

        Raises:
            ValueError: a number is not positive.
            JobError: SLURM does not give the nodes; the text says why.

        """
        from monarch._job.slurm.job import SlurmJob  # noqa: PLC0415 - of this kind of job only

        meshes = _meshes("from_slurm", nodes, gpus_per_node, spares)
        options.setdefault("monarch_port", 0)  # nodes may share a machine
        job = SlurmJob(meshes, gpus_per_node=gpus_per_node, **options)
        return cls(job, nodes, gpus_per_node, spares, spare_procs, name, bootstrap, restart)

    @classmethod
    def from_kubernetes(
        cls,
        image: ImageSpec,
        nodes: int = 1,
        gpus_per_node: int = 1,
        spares: int = 0,
        *,
        namespace: str,
        kubeconfig: KubeConfig | None = None,
        attach_to: str | None = None,
        spare_procs: int = 0,
        name: str | None = None,
        bootstrap: Callable[[], Any] | None = None,
        restart: Restart | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Self:
        """Pods from Kubernetes; waits until they are ready.

        Args:
            image: what they run. GPUs are asked for in its `resources`.
            nodes: their number.
            gpus_per_node: processes in each.
            spares: pods more, that stand by.
            namespace: where they are made.
            kubeconfig: how the API is reached; None as a pod of the cluster does.
            attach_to: how pods are reached from outside, as in `KubernetesJob`.
            spare_procs: as in `local`.
            name: as in `local`.
            bootstrap: as in `local`.
            restart: as in `local`.
            timeout: seconds to wait for the pods; None to wait as long as it takes.
            options: more of `KubernetesJob.add_mesh`, as `labels` or `port`.

        Raises:
            ValueError: a number is not positive.
            JobError: Kubernetes does not give the pods; the text says why.

        """
        from monarch._job.kube.job import KubernetesJob  # noqa: PLC0415 - of this kind of job only

        job = KubernetesJob(namespace, timeout, kubeconfig, attach_to)
        for mesh, count in _meshes("from_kubernetes", nodes, gpus_per_node, spares).items():
            job.add_mesh(mesh, count, image_spec=image, **options)
        return cls(job, nodes, gpus_per_node, spares, spare_procs, name, bootstrap, restart)

    @classmethod
    def from_skypilot(
        cls,
        nodes: int = 1,
        gpus_per_node: int = 1,
        spares: int = 0,
        *,
        resources: Any = None,
        spare_procs: int = 0,
        name: str | None = None,
        bootstrap: Callable[[], Any] | None = None,
        restart: Restart | None = None,
        **options: Any,
    ) -> Self:
        """Nodes from SkyPilot, each a cluster of its own; waits until they are there.

        Args:
            nodes: their number.
            gpus_per_node: processes on each.
            spares: nodes more, that stand by.
            resources: what a node has, as in a task of SkyPilot's ({"accelerators": "H200:8"}), or
                a `sky.Resources`.
            spare_procs: as in `local`.
            name: as in `local`.
            bootstrap: as in `local`.
            restart: as in `local`.
            options: more of `SkyPilotJob`, as `setup_commands`.

        Raises:
            ValueError: a number is not positive.
            JobError: SkyPilot does not give the nodes; the text says why.

        """
        from monarch._job.sky.job import SkyPilotJob  # noqa: PLC0415 - of this kind of job only

        meshes = _meshes("from_skypilot", nodes, gpus_per_node, spares)
        job = SkyPilotJob(meshes, resources, **options)
        return cls(job, nodes, gpus_per_node, spares, spare_procs, name, bootstrap, restart)

    @classmethod
    def from_ssh(
        cls,
        hosts: Sequence[str] | str,
        gpus_per_host: int = 1,
        spares: int = 0,
        *,
        spare_procs: int = 0,
        name: str | None = None,
        bootstrap: Callable[[], Any] | None = None,
        restart: Restart | None = None,
        **options: Any,
    ) -> Self:
        """Machines that are reached by `ssh`.

        Args:
            hosts: what `ssh` takes for each (`user@host`, or a name of its configuration), or text
                such as "node[01-04]".
            gpus_per_host: processes on each.
            spares: how many of these hosts, the last ones, stand by.
            spare_procs: as in `local`.
            name: as in `local`.
            bootstrap: as in `local`.
            restart: as in `local`.
            options: more of `SSHJob`, as `ssh_args`.

        Raises:
            ValueError: a number is not positive, or `spares` leaves no host.
            JobError: a host cannot be reached.

        """
        from monarch._job.hostlist import expand  # noqa: PLC0415 - of this kind of job only
        from monarch._job.ssh.job import SSHJob  # noqa: PLC0415 - as above

        listed = expand(hosts) if isinstance(hosts, str) else list(hosts)
        nodes = len(listed) - spares
        meshes = _meshes("from_ssh", nodes, gpus_per_host, spares)
        named = {HOSTS: listed[:nodes], SPARES: listed[nodes:]}
        job = SSHJob({mesh: named[mesh] for mesh in meshes}, **options)
        return cls(job, nodes, gpus_per_host, spares, spare_procs, name, bootstrap, restart)


def _meshes(asked: str, nodes: int, gpus: int, spares: int) -> dict[str, int]:
    """The meshes of a job with so many hosts.

    Raises:
        ValueError: a number cannot be.

    """
    for what, number, least in (("hosts", nodes, 1), ("gpus", gpus, 1), ("spares", spares, 0)):
        if not isinstance(number, int) or number < least:
            raise ValueError(
                f"ProcessMesh.{asked}: the number of {what} is {least} or more, not {number!r}"
            )
    return {HOSTS: nodes, SPARES: spares} if spares else {HOSTS: nodes}
