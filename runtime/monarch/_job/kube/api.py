"""The calls of the Kubernetes API that jobs need, by lightkube; objects are plain dictionaries."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from monarch._job.kube.spec import KubeConfig

_NOT_FOUND, _CONFLICT, _BUSY = 404, 409, {429, 500, 502, 503, 504}
GRACE = 10  # seconds that a pod has to end in order


class NotAnsweredError(JobError):
    """The API could not be asked just now; the pods may be well."""


class Api:
    """A namespace of a cluster; a context manager.

    Raises:
        JobError: lightkube is not installed, or says that there is no cluster to reach.

    """

    def __init__(self, config: KubeConfig, namespace: str) -> None:
        try:
            import lightkube  # noqa: PLC0415 - an extra
            from lightkube.core.exceptions import ApiError, ConfigError  # noqa: PLC0415
            from lightkube.resources import core_v1  # noqa: PLC0415
        except ImportError:
            raise JobError(
                "a KubernetesJob needs lightkube, which is not installed: pip install lightkube"
            ) from None
        self.namespace = namespace
        self._error = ApiError
        self._kinds: dict[str, Any] = {"Pod": core_v1.Pod, "Secret": core_v1.Secret}
        try:
            if config.local is not None:
                found = lightkube.KubeConfig.from_file(os.fspath(config.local))
            else:
                found = lightkube.KubeConfig.from_service_account()
            single = found.get(config.context)
        except (ConfigError, OSError, ValueError) as error:
            where = config.local or "the service account of this pod"
            raise JobError(
                f"no cluster by {where}: {error}; outside of one, KubeConfig.from_path(...) names "
                "a kubeconfig file"
            ) from None
        self._client: Any = lightkube.Client(config=single, namespace=namespace)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def create(self, manifest: dict[str, Any]) -> None:
        """Make an object; one of that name that is there is left as it is.

        Raises:
            JobError: the API refuses it, with its words.

        """
        kind = self._kinds[manifest["kind"]]
        made = kind.from_dict(manifest)
        what = f"{manifest['kind']} {manifest['metadata']['name']}"
        self._do(f"make {what}", lambda: self._client.create(made), {_CONFLICT})

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """The pods that a label selector matches."""
        kind, client = self._kinds["Pod"], self._client
        labels = dict(part.partition("=")[::2] for part in selector.split(",") if part)
        listed = self._do("list pods", lambda: list(client.list(kind, labels=labels)))
        return [one.to_dict() for one in listed]

    def delete(self, kind: str, name: str) -> None:
        """Remove an object, in order; one that is not there is left alone."""
        client = self._client
        options = {"grace_period": GRACE} if kind == "Pod" else {}
        self._do(
            f"remove {kind} {name}",
            lambda: client.delete(self._kinds[kind], name, **options),
            {_NOT_FOUND},
        )

    def _do(self, what: str, call: Callable[[], Any], fine: set[int] | None = None) -> Any:
        try:
            return call()
        except self._error as error:
            code = getattr(error.status, "code", 0) or 0
            if code in (fine or ()):
                return None
            said = f"Kubernetes cannot {what} in {self.namespace}: {error.status.message or error}"
            raise (NotAnsweredError if code in _BUSY else JobError)(said) from None
        except Exception as error:
            if not type(error).__module__.startswith("httpx"):
                raise
            raise NotAnsweredError(
                f"Kubernetes does not answer ({what}): {type(error).__name__}: {error}"
            ) from None
