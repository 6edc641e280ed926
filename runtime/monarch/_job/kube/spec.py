"""What a KubernetesJob asks for: images, how to reach the API, and the manifests of its pods."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping  # noqa: TC003 - a field's type, read when a job is loaded
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monarch._job.attached import EXPIRES

INDEX = "batch.kubernetes.io/job-completion-index"
RANK_LABEL = "apps.kubernetes.io/pod-index"
PORT = 26600
JOB, MESH, RANK = "monarch/job", "monarch/mesh", "monarch/rank"
WORKER = {"app.kubernetes.io/name": "monarch-worker"}
_FOLDER = "/var/run/monarch"
_AGAIN = 6  # times for each host that a Job makes a failed pod again
_NAME = re.compile(r"[a-z]([a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """The container of a host: an image with Python and this package.

    Attributes:
        image: its name.
        resources: what it has, requests and limits alike, as {"nvidia.com/gpu": 8, "cpu": "16"}.
        shared_memory_size: size of /dev/shm, as "16Gi"; None for the runtime's own.
        python: the interpreter in it.

    """

    image: str
    resources: Mapping[str, int | str] = field(default_factory=dict)
    shared_memory_size: str | None = None
    python: str = "python"


@dataclass(frozen=True, slots=True)
class KubeConfig:
    """How the API is reached: by a kubeconfig file, or as a pod of the cluster does."""

    local: Path | None = None
    context: str | None = None

    @classmethod
    def from_path(cls, path: str | Path, context: str | None = None) -> KubeConfig:
        """By a kubeconfig file, and one of its contexts (None for the current one)."""
        return cls(Path(path), context)

    @property
    def out_of_cluster(self) -> bool:
        """Whether this program is no pod of the cluster."""
        return self.local is not None


@dataclass(frozen=True, slots=True)
class Mesh:
    """One mesh of pods: made by the job where there is a template, found by a selector else.

    `indexed`: they are made by an Indexed Job. `bind` is where hosts listen, their pod's address
    where it is empty.
    """

    replicas: int
    port: int = PORT
    selector: str = ""
    rank_label: str = RANK_LABEL
    image: ImageSpec | None = None
    template: dict[str, Any] | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    indexed: bool = False
    bind: str = ""

    @property
    def provisioned(self) -> bool:
        """Whether the job makes the pods."""
        return self.image is not None or self.template is not None


def check_name(name: str) -> None:
    """Refuse names that pods and attributes cannot both have.

    Raises:
        ValueError: it is one.

    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"mesh name {name!r} must be up to 63 lowercase letters and digits, a letter first"
        )


def pod(job: str, name: str, mesh: Mesh, rank: int, generation: int) -> dict[str, Any]:
    """The manifest of one host's pod."""
    title = f"{job}-{name}-{rank}" + (f"-{generation}" if generation else "")
    made = _template(job, name, mesh)
    made["metadata"]["labels"][RANK] = str(rank)
    made["metadata"]["name"] = title
    return {"apiVersion": "v1", "kind": "Pod", **made}


def indexed_job(job: str, name: str, mesh: Mesh) -> dict[str, Any]:
    """The manifest of an Indexed Job that makes the pods of a mesh."""
    made = _template(job, name, mesh)
    spec = {
        "completions": mesh.replicas,
        "parallelism": mesh.replicas,
        "completionMode": "Indexed",
        "backoffLimit": _AGAIN * mesh.replicas,
        "template": made,
    }
    metadata = {"name": f"{job}-{name}", **copy.deepcopy(made["metadata"])}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _template(job: str, name: str, mesh: Mesh) -> dict[str, Any]:
    """Metadata and spec of a host's pod."""
    template = copy.deepcopy(mesh.template) if mesh.template is not None else _of_image(mesh.image)
    spec = template["spec"]
    container = spec["containers"][0]
    python = mesh.image.python if mesh.image is not None else "python"
    container["command"] = [
        *(python, "-m", "monarch._job.kube.host", f"{_FOLDER}/secret", "$(MONARCH_POD_IP)"),
        *(mesh.bind, str(mesh.port), "$(MONARCH_POD_NAME)", str(EXPIRES)),
    ]
    container.pop("args", None)
    for variable, path in (("IP", "status.podIP"), ("NAME", "metadata.name")):
        value = {"fieldRef": {"fieldPath": path}}
        named = {"name": f"MONARCH_POD_{variable}", "valueFrom": value}
        container.setdefault("env", []).append(named)
    mount = {"name": "monarch-secret", "mountPath": _FOLDER, "readOnly": True}
    container.setdefault("volumeMounts", []).append(mount)
    container.setdefault("ports", []).append({"containerPort": mesh.port, "name": "monarch"})
    probe = {"tcpSocket": {"port": mesh.port}, "periodSeconds": 2}
    container.setdefault("readinessProbe", probe)
    container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")  # how it failed
    volume = {"name": "monarch-secret", "secret": {"secretName": job, "defaultMode": 0o400}}
    spec.setdefault("volumes", []).append(volume)
    spec["restartPolicy"] = "Never"
    given = template.get("metadata") or {}
    labels = {**(given.get("labels") or {}), **mesh.labels, **WORKER, JOB: job, MESH: name}
    annotations = {**(given.get("annotations") or {}), **mesh.annotations}
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def secret(job: str, key: bytes) -> dict[str, Any]:
    """The manifest of the Secret that holds the cluster's secret."""
    import base64  # noqa: PLC0415 - only here

    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": job, "labels": {**WORKER, JOB: job}},
        "type": "Opaque",
        "data": {"secret": base64.b64encode(key).decode()},
    }


def _of_image(image: ImageSpec | None) -> dict[str, Any]:
    assert image is not None  # noqa: S101 - a mesh has one or a template
    amounts = {name: str(amount) for name, amount in image.resources.items()}
    container: dict[str, Any] = {"name": "monarch", "image": image.image}
    if amounts:
        container["resources"] = {"requests": amounts, "limits": dict(amounts)}
    spec: dict[str, Any] = {"containers": [container]}
    if image.shared_memory_size is not None:
        container["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
        memory = {"medium": "Memory", "sizeLimit": image.shared_memory_size}
        spec["volumes"] = [{"name": "shm", "emptyDir": memory}]
    return {"spec": spec}
