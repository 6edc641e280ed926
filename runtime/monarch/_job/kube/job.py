"""`KubernetesJob`: each host a pod."""

# ruff: noqa: SLF001 - meshes and other jobs are of the same package

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from monarch._job import gateway
from monarch._job.attached import AttachedHosts
from monarch._job.job import JobState, JobTrait
from monarch._job.kube import waiting
from monarch._job.kube.api import Api, NotAnsweredError
from monarch._job.kube.forward import Forwards
from monarch._job.kube.spec import (
    INDEX,
    JOB,
    MESH,
    PORT,
    RANK,
    RANK_LABEL,
    KubeConfig,
    Mesh,
    check_name,
    indexed_job,
    pod,
    secret,
)
from monarch._link import secret as secrets
from monarch._link.address import Address
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from monarch._job.kube.spec import ImageSpec
    from monarch._job.kube.waiting import Pod
    from monarch._mesh.host_mesh import HostMesh, HostRef

_GONE_SECONDS = 60.0  # for pods to be gone
_PAUSE = 0.3
_SEVERAL = 1.0  # seconds between two looks where several meshes may change


class KubernetesJob(JobTrait):
    """A job whose hosts are pods.

    A mesh with an image (or a pod template) gets plain pods of this job's own, or an Indexed Job
    that makes them: no operator and no resource definition is needed, and the secret comes to them
    by a Secret. A mesh without one is of pods that are there already, found by their labels, which
    run `monarch serve` with a secret that this program has as well (`MONARCH_SECRET_FILE`).

    Needs lightkube, and rights to get, list, watch, create and delete pods and secrets (and jobs,
    for Indexed Jobs; pods/portforward outside of the cluster).

    Args:
        namespace: where the pods are.
        timeout: seconds to wait for all pods to be ready; None to wait as long as it takes.
        kubeconfig: how the API is reached; None as a pod of the cluster does.
        attach_to: how pods are reached from outside of the cluster: None for port forwards through
            the API, "pods" for their own addresses, which a pod of the cluster uses. Or the address
            of one host of the cluster, by way of which all others are reached, as by
            `monarch.actor.attach`; on loopback, where a forward to its port begins.

    Raises:
        AddressError: `attach_to` is neither of these.

    """

    _transient = ("_attached", "_forwards")
    _namespace: str
    _timeout: float | None
    _kubeconfig: KubeConfig
    _forwarded: bool
    _gateway: str
    _meshes: dict[str, Mesh]
    _name: str | None
    _generations: dict[str, int]  # by "mesh-rank", of those that were replaced
    _places: dict[str, str]  # by the id of a pod, also of one that was: "mesh-rank"
    _complete: bool  # whether all hosts were there once

    def __init__(
        self,
        namespace: str,
        timeout: float | None = None,
        kubeconfig: KubeConfig | None = None,
        attach_to: str | None = None,
    ) -> None:
        super().__init__()
        self._namespace = namespace
        self._timeout = timeout
        self._kubeconfig = kubeconfig or KubeConfig()
        self._forwarded = self._kubeconfig.out_of_cluster and attach_to is None
        self._gateway = ""
        if attach_to not in (None, "pods"):
            others = 'None for port forwards, "pods" for their own addresses'
            self._gateway = gateway.entrance(attach_to, others)
        self._meshes = {}
        self._name = None
        self._generations = {}
        self._places = {}
        self._complete = False
        self._attached = AttachedHosts()
        self._forwards = Forwards(self._api)

    def add_mesh(
        self,
        name: str,
        num_replicas: int,
        label_selector: str | None = None,
        pod_rank_label: str = RANK_LABEL,
        image_spec: ImageSpec | None = None,
        port: int = PORT,
        pod_template: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        *,
        indexed_job: bool = False,
    ) -> None:
        """Ask for one more mesh of this many pods, before the job is applied.

        Args:
            name: lowercase letters and digits.
            num_replicas: the number of pods.
            label_selector: of pods that are there, as "app=worker,tier=gpu".
            pod_rank_label: the label of such pods that has their rank.
            image_spec: what pods of the job's own run.
            port: where hosts listen.
            pod_template: in place of an image: metadata and spec as in a manifest; the first
                container is the host's, and its command is set here.
            labels: more labels of the job's own pods.
            annotations: more annotations of them.
            indexed_job: whether an Indexed Job makes the pods, which makes another in place of one
                that fails. Else each is made by this program.

        Raises:
            ValueError: these contradict each other.
            JobError: the job has been applied.

        """
        check_name(name)
        if not isinstance(num_replicas, int) or num_replicas < 1:
            raise ValueError(
                f"mesh {name!r} has {num_replicas!r} pods; that is a number, 1 or more"
            )
        if image_spec is not None and pod_template is not None:
            raise ValueError("image_spec and pod_template exclude each other")
        made = image_spec is not None or pod_template is not None
        if made and (label_selector is not None or pod_rank_label != RANK_LABEL):
            raise ValueError(
                "label_selector and pod_rank_label are for pods that are there already"
            )
        if not made and (labels or annotations or indexed_job):
            raise ValueError("labels, annotations and indexed_job are for pods that the job makes")
        if not made and not label_selector:
            label_selector = f"app.kubernetes.io/name=monarch-worker,monarch/mesh={name}"
        if pod_template is not None and not (pod_template.get("spec") or {}).get("containers"):
            raise ValueError("pod_template has no spec.containers")
        if self.active:
            raise JobError(f"mesh {name!r} comes too late: the job has been applied")
        self._meshes[name] = Mesh(
            replicas=num_replicas,
            port=port,
            selector=label_selector or "",
            rank_label=pod_rank_label,
            image=image_spec,
            template=None if pod_template is None else dict(pod_template),
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
            indexed=indexed_job,
            # Forwards come from within the pod.
            bind="*" if self._forwarded or self._gateway else "",
        )

    def can_run(self, spec: JobTrait) -> bool:
        """Whether `spec` asks for the same, and none of this job's pods has ended."""
        if not isinstance(spec, KubernetesJob) or spec._asked() != self._asked():
            return False
        try:
            with Api(spec._kubeconfig, self._namespace) as api:
                found = self._look(api)
        except JobError:
            return False
        return set(self._wanted()) <= set(found) and not any(one.lost for one in found.values())

    def _asked(self) -> tuple[Any, ...]:
        return self._namespace, self._kubeconfig, self._meshes, self._forwarded, self._gateway

    def _wanted(self) -> dict[tuple[str, int], str]:
        """All hosts, each with the name of its pod, which is empty where others make that."""
        return {
            (name, rank): self._title(name, rank) if mesh.provisioned and not mesh.indexed else ""
            for name, mesh in self._meshes.items()
            for rank in range(mesh.replicas)
        }

    def _create(self, client_script: str | None) -> None:
        if client_script is not None:
            raise JobError("a KubernetesJob runs no client program; run it in a pod of its own")
        if not self._meshes:
            raise ValueError("the job has no mesh; add_mesh() gives it one")
        if self._gateway:
            gateway.needed(self._gateway)  # before there are pods
        self._name = f"monarch-{os.urandom(5).hex()}"
        self._generations.clear()
        self._places.clear()
        self._complete = False
        self._attached = AttachedHosts()
        try:
            with self._api() as api:
                self._make(api)
        except BaseException as error:
            self._give_up(error)
            raise

    def _api(self) -> Api:
        return Api(self._kubeconfig, self._namespace)

    def _make(self, api: Api) -> None:
        made = {name: mesh for name, mesh in self._meshes.items() if mesh.provisioned}
        assert self._name is not None  # noqa: S101 - set by who calls
        if made:
            api.create(secret(self._name, secrets.current().give()))
        for name, mesh in made.items():
            if mesh.indexed:
                api.create(indexed_job(self._name, name, mesh))
                continue
            for rank in range(mesh.replicas):
                api.create(pod(self._name, name, mesh, rank, 0))

    def _look(self, api: Api) -> dict[tuple[str, int], Pod]:
        """The pods of this job, by mesh and rank."""
        found: dict[tuple[str, int], Pod] = {}
        for name, mesh in self._meshes.items():
            for manifest in api.pods(self._selector(name)):
                rank = _rank(manifest, mesh)
                if rank is None:
                    continue
                read = waiting.read(manifest)
                if mesh.indexed:
                    # Of those that failed the Job makes another, which may be here already.
                    if not read.lost or (not self._complete and (name, rank) not in found):
                        found[name, rank] = read
                elif not mesh.provisioned or read.name == self._title(name, rank):
                    found[name, rank] = read
        return found

    def _selector(self, name: str) -> str:
        mesh = self._meshes[name]
        return f"{JOB}={self._name},{MESH}={name}" if mesh.provisioned else mesh.selector

    def _pause(self, api: Api, name: str | None = None) -> Callable[[float], None]:
        """Waits for a change of the pods of a mesh, by default of the first of several."""
        selector = self._selector(name or next(iter(self._meshes)))
        return lambda seconds: api.wait_for_change(
            selector, seconds if len(self._meshes) == 1 or name else min(seconds, _SEVERAL)
        )

    def _title(self, name: str, rank: int) -> str:
        generation = self._generations.get(f"{name}-{rank}", 0)
        return f"{self._name}-{name}-{rank}" + (f"-{generation}" if generation else "")

    def _state(self) -> JobState:
        try:
            with self._api() as api:
                found = waiting.wait(
                    lambda: self._look(api), self._pause(api), self._wanted(), self._timeout
                )
        except JobError as error:
            if not self._complete:
                self._give_up(error)
            raise
        self._complete = True
        if any(mesh.provisioned for mesh in self._meshes.values()):
            secrets.current().give()  # the hosts have it
        if self._gateway:
            port = next(iter(self._meshes.values())).port
            pod = next(iter(found.values())).name
            command = f"kubectl -n {self._namespace} port-forward pod/{pod}"
            gateway.enter(self._gateway, lambda here: f"{command} {here}:{port}")
        state = {
            name: self._attach(name, {rank: found[name, rank] for rank in range(mesh.replicas)})
            for name, mesh in self._meshes.items()
        }
        return JobState(state)

    def _attach(self, name: str, pods: Mapping[int, Pod]) -> HostMesh:
        port = self._meshes[name].port
        for rank, one in pods.items():
            if self._meshes[name].provisioned:
                self._places[one.name] = f"{name}-{rank}"
            if self._forwarded:
                self._forwards.open(Address("tcp", host=one.ip, port=port).url, one.name, port)
        hosts = [(Address("tcp", host=one.ip, port=port).url, one.name) for one in pods.values()]
        mesh = self._attached.attach(name, hosts)
        self._attached.lease(mesh)
        return mesh

    def _keep(self) -> None:
        self._attached.keep()

    def _replace(self, node_id: str) -> HostRef:
        place = self._places.get(node_id)
        if place is None:
            known = ", ".join(sorted(self._places)) or "none yet"
            raise JobError(f"the job has made no pod {node_id!r} to replace; its pods are {known}")
        name, _, number = place.rpartition("-")
        key = name, int(number)
        mesh = self._meshes[name]
        old = {one for one, where in self._places.items() if where == place}
        assert self._name is not None  # noqa: S101 - the job runs
        with self._api() as api:
            if not mesh.indexed:
                self._generations[place] = self._generations.get(place, 0) + 1
                api.create(pod(self._name, name, mesh, key[1], self._generations[place]))
            for one in old:
                api.delete("Pod", one)

            def look() -> dict[tuple[str, int], Pod]:
                found = self._look(api)
                return {key: found[key]} if key in found and found[key].name not in old else {}

            found = waiting.wait(
                look, self._pause(api, name), {key: self._wanted()[key]}, self._timeout
            )
        return self._attach(name, {key[1]: found[key]})._refs()[0]

    def _kill(self) -> None:
        self._attached.free()
        self._forwards.close()
        name, self._name = self._name, None
        if name is None or not any(mesh.provisioned for mesh in self._meshes.values()):
            return
        with self._api() as api:
            jobs = [f"{name}-{mesh}" for mesh, one in self._meshes.items() if one.indexed]
            left, trouble = _remove(api, name, jobs)
        if left:
            why = f" ({trouble})" if trouble is not None else ""
            raise JobError(
                f"pods of job {name} are still there{why}: {', '.join(left)}; remove them with: "
                f"kubectl -n {self._namespace} delete jobs,pods,secrets -l {JOB}={name}"
            )

    def _wake(self) -> None:
        self._attached = AttachedHosts(kept=True)
        self._forwards = Forwards(self._api)


def _rank(manifest: Mapping[str, Any], mesh: Mesh) -> int | None:
    """Which host of its mesh a pod is; None where it is none."""
    metadata = manifest["metadata"]
    label = mesh.rank_label if not mesh.provisioned else INDEX if mesh.indexed else RANK
    # Before Kubernetes 1.28 the index of an Indexed Job was an annotation alone.
    text = str((metadata.get("labels") or {}).get(label, ""))
    text = text or str((metadata.get("annotations") or {}).get(label, ""))
    return int(text) if text.isdecimal() and int(text) < mesh.replicas else None


def _remove(api: Api, job: str, jobs: Sequence[str]) -> tuple[list[str], JobError | None]:
    """Remove a job's pods, then its Secret; those that are left after a while, and why.

    `jobs` are the Indexed Jobs that would make pods again.
    """
    until = time.monotonic() + _GONE_SECONDS
    left, trouble = ["(unknown)"], None
    while True:
        try:
            for one in jobs:
                api.delete("Job", one)
            left = [str(one["metadata"]["name"]) for one in api.pods(f"{JOB}={job}")]
            for one in left:
                api.delete("Pod", one)
            if not left:
                api.delete("Secret", job)
            trouble = None
        except NotAnsweredError as error:
            trouble = error
        if (not left and trouble is None) or time.monotonic() > until:
            return left, trouble
        time.sleep(_PAUSE)
