"""`KubernetesJob`: each host a pod."""

# ruff: noqa: SLF001 - meshes and other jobs are of the same package

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from monarch._actor.process import process
from monarch._job.attach import attach_to_workers
from monarch._job.job import JobState, JobTrait
from monarch._job.kube import waiting
from monarch._job.kube.api import Api, NotAnsweredError
from monarch._job.kube.spec import (
    JOB,
    MESH,
    PORT,
    RANK,
    RANK_LABEL,
    KubeConfig,
    Mesh,
    check_name,
    pod,
    secret,
)
from monarch._link import secret as secrets
from monarch.errors import JobError, StoppedError, SupervisionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from monarch._job.kube.spec import ImageSpec
    from monarch._job.kube.waiting import Pod
    from monarch._mesh.host_mesh import HostMesh, HostRef

_FREE_SECONDS = 5.0  # for what this program runs on the hosts to stop before they end
_GONE_SECONDS = 60.0  # for pods to be gone
_PAUSE = 0.3


class KubernetesJob(JobTrait):
    """A job whose hosts are pods.

    A mesh with an image (or a pod template) gets plain pods of this job's own: no operator and no
    resource definition is needed, and the secret comes to them by a Secret. A mesh without one is
    of pods that are there already, found by their labels, which run `monarch serve` with a secret
    that this program has as well (`MONARCH_SECRET_FILE`).

    Needs lightkube, and rights to get, list, create and delete pods and secrets. Pods must be
    reachable from this program by their addresses.

    Args:
        namespace: where the pods are.
        timeout: seconds to wait for all pods to be ready; None to wait as long as it takes.
        kubeconfig: how the API is reached; None as a pod of the cluster does.

    """

    def __init__(
        self,
        namespace: str,
        timeout: float | None = None,
        kubeconfig: KubeConfig | None = None,
    ) -> None:
        super().__init__()
        self._namespace = namespace
        self._timeout = timeout
        self._kubeconfig = kubeconfig or KubeConfig()
        self._meshes: dict[str, Mesh] = {}
        self._name: str | None = None
        self._generations: dict[str, int] = {}  # by "mesh-rank", of those that were replaced
        self._replaced: dict[str, str] = {}  # by a pod's id, "mesh-rank" of the one in its place
        self._complete = False  # whether all hosts were there once
        self._kept = False
        self._attached: list[HostMesh] = []

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
        if not made and (labels or annotations):
            raise ValueError("labels and annotations are for pods that the job makes")
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
        return self._wanted() <= set(found) and not any(one.lost for one in found.values())

    def _asked(self) -> tuple[Any, ...]:
        return self._namespace, self._kubeconfig, self._meshes

    def _wanted(self) -> set[tuple[str, int]]:
        return {(name, r) for name, mesh in self._meshes.items() for r in range(mesh.replicas)}

    def _create(self, client_script: str | None) -> None:
        if client_script is not None:
            raise JobError("a KubernetesJob runs no client program; run it in a pod of its own")
        if not self._meshes:
            raise ValueError("the job has no mesh; add_mesh() gives it one")
        self._name = f"monarch-{os.urandom(5).hex()}"
        self._generations.clear()
        self._replaced.clear()
        self._complete = self._kept = False
        try:
            with self._api() as api:
                self._make(api)
        except BaseException as error:
            self._give_up(error)
            raise

    def _api(self) -> Api:
        return Api(self._kubeconfig, self._namespace)

    def _make(self, api: Api) -> None:
        made = [
            (n, m, r) for n, m in self._meshes.items() if m.provisioned for r in range(m.replicas)
        ]
        assert self._name is not None  # noqa: S101 - set by who calls
        if made:
            api.create(secret(self._name, secrets.current().give()))
        for name, mesh, rank in made:
            api.create(pod(self._name, name, mesh, rank, 0))

    def _give_up(self, why: BaseException) -> None:
        """End a job that did not come to be; what cannot be ended is added to the reason."""
        try:
            self._kill()
        except JobError as error:
            why.add_note(str(error))
        self._apply_id = None

    def _look(self, api: Api) -> dict[tuple[str, int], Pod]:
        """The pods of this job, by mesh and rank."""
        found: dict[tuple[str, int], Pod] = {}
        for name, mesh in self._meshes.items():
            selector = f"{JOB}={self._name},{MESH}={name}" if mesh.provisioned else mesh.selector
            label = RANK if mesh.provisioned else mesh.rank_label
            for manifest in api.pods(selector):
                rank = str((manifest["metadata"].get("labels") or {}).get(label, ""))
                if not rank.isdecimal() or int(rank) >= mesh.replicas:
                    continue
                expected = self._title(name, int(rank)) if mesh.provisioned else None
                if expected in {None, manifest["metadata"]["name"]}:
                    found[name, int(rank)] = waiting.read(manifest)
        return found

    def _title(self, name: str, rank: int) -> str:
        generation = self._generations.get(f"{name}-{rank}", 0)
        return f"{self._name}-{name}-{rank}" + (f"-{generation}" if generation else "")

    def _state(self) -> JobState:
        try:
            with self._api() as api:
                found = waiting.wait(lambda: self._look(api), self._wanted(), self._timeout)
        except JobError as error:
            if not self._complete:
                self._give_up(error)
            raise
        self._complete = True
        if any(mesh.provisioned for mesh in self._meshes.values()):
            secrets.current().give()  # the hosts have it
        state = {
            name: self._attach(
                name, [(found[name, rank], mesh.port) for rank in range(mesh.replicas)]
            )
            for name, mesh in self._meshes.items()
        }
        for mesh in state.values():
            self._lease(mesh)
        return JobState(state)

    def _attach(self, name: str, pods: Iterable[tuple[Pod, int]]) -> HostMesh:
        listed = list(pods)
        mesh = attach_to_workers(
            ca="trust_all_connections",
            workers=[_address(one.ip, port) for one, port in listed],
            name=name,
        )
        for ref, (one, _port) in zip(mesh._refs(), listed, strict=True):
            ref.node = one.name
        self._attached.append(mesh)
        return mesh

    def _lease(self, mesh: HostMesh) -> None:
        """Tell hosts that this program wants them, and whether they are to outlive it."""
        for ref in mesh._refs():
            process().tell(ref.proc, "host_lease", self._kept)

    def _keep(self) -> None:
        self._kept = True
        for mesh in self._attached:
            with contextlib.suppress(ConnectionError):
                self._lease(mesh)

    def _replace(self, node_id: str) -> HostRef:
        place = self._replaced.get(node_id)
        for name, rank in self._wanted():
            if self._title(name, rank) == node_id and self._meshes[name].provisioned:
                place = f"{name}-{rank}"
        if place is None:
            known = ", ".join(self._title(*key) for key in sorted(self._wanted()))
            raise JobError(f"the job has made no pod {node_id!r} to replace; its pods are {known}")
        name, _, number = place.rpartition("-")
        rank, mesh = int(number), self._meshes[name]
        old = self._title(name, rank)
        self._generations[place] = self._generations.get(place, 0) + 1
        self._replaced[node_id] = place
        assert self._name is not None  # noqa: S101 - the job runs
        key = (name, rank)
        with self._api() as api:
            api.create(pod(self._name, name, mesh, rank, self._generations[place]))
            api.delete("Pod", old)

            def look() -> dict[tuple[str, int], Pod]:
                found = self._look(api)
                return {key: found[key]} if key in found else {}

            found = waiting.wait(look, {key}, self._timeout)
        attached = self._attach(name, [(found[key], mesh.port)])
        self._lease(attached)
        return attached._refs()[0]

    def _kill(self) -> None:
        attached, self._attached = self._attached, []
        for one in [one for mesh in attached for one in mesh.stop_procs("the job was ended")]:
            with contextlib.suppress(TimeoutError, ConnectionError, SupervisionError, StoppedError):
                one.get(_FREE_SECONDS)
        name, self._name = self._name, None
        if name is None or not any(mesh.provisioned for mesh in self._meshes.values()):
            return
        with self._api() as api:
            left, trouble = _remove(api, name)
        if left:
            why = f" ({trouble})" if trouble is not None else ""
            raise JobError(
                f"pods of job {name} are still there{why}: {', '.join(left)}; remove them with: "
                f"kubectl -n {self._namespace} delete pods,secrets -l {JOB}={name}"
            )

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        state["_attached"] = []
        return state


def _remove(api: Api, job: str) -> tuple[list[str], JobError | None]:
    """Remove a job's pods, then its Secret; those that are left after a while, and why."""
    until = time.monotonic() + _GONE_SECONDS
    left, trouble = ["(unknown)"], None
    while True:
        try:
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


def _address(ip: str, port: int) -> str:
    return f"tcp://[{ip}]:{port}" if ":" in ip else f"tcp://{ip}:{port}"
