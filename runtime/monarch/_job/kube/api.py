"""The calls of the Kubernetes API that jobs need, by lightkube; objects are plain dictionaries."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from monarch._job.kube import frames
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from monarch._job.kube.spec import KubeConfig

_NOT_FOUND, _CONFLICT, _BUSY = 404, 409, {429, 500, 502, 503, 504}
GRACE = 10  # seconds that a pod has to end in order
_CHUNK, _FIRST = 1 << 16, 10.0  # bytes at a time of a port forward, and seconds for the first


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
            from lightkube.resources import batch_v1, core_v1  # noqa: PLC0415
            from lightkube.types import CascadeType  # noqa: PLC0415
        except ImportError:
            raise JobError(
                "a KubernetesJob needs lightkube, which is not installed: pip install lightkube"
            ) from None
        self.namespace = namespace
        self._error = ApiError
        self._kinds: dict[str, Any] = {
            "Pod": core_v1.Pod,
            "Secret": core_v1.Secret,
            "Job": batch_v1.Job,
        }
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
        self._http: Any = self._client._client._client  # noqa: SLF001 - for watches that end, and websockets
        self._cascade = CascadeType.BACKGROUND
        self._versions: dict[str, str] = {}  # of what was listed last, by selector

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the API."""
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

        def ask() -> list[dict[str, Any]]:
            listed = client.list(kind, labels=labels)
            found = [one.to_dict() for one in listed]
            self._versions[selector] = listed.resourceVersion
            return found

        listed: list[dict[str, Any]] = self._do("list pods", ask)
        return listed

    def wait_for_change(self, selector: str, seconds: float) -> None:
        """Wait until something changes in what `pods` gave for this selector, at most so long.

        Where the API does not say (the version is too old, watches are not allowed, it is away),
        it is waited for that long: who calls lists again, and learns all that was missed.
        """
        until = time.monotonic() + seconds
        version = self._versions.pop(selector, None)
        if version is not None:
            with contextlib.suppress(Exception):
                if self._watch(selector, version, seconds):
                    return
        time.sleep(max(until - time.monotonic(), 0.0))

    def _watch(self, selector: str, version: str, seconds: float) -> bool:
        """Whether there was an event before the time was over."""
        import json  # noqa: PLC0415 - of lightkube's weight anyway

        asked = {"watch": "1", "labelSelector": selector, "resourceVersion": version}
        asked["timeoutSeconds"] = str(max(round(seconds), 1))
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        with self._http.stream("GET", path, params=asked, timeout=seconds) as answer:
            if answer.status_code != 200:
                return False
            for line in answer.iter_lines():
                return str(json.loads(line).get("type")) in {"ADDED", "MODIFIED", "DELETED"}
        return False

    @contextlib.contextmanager
    def forward(self, pod: str, port: int) -> Iterator[tuple[Any, bytes]]:
        """A connection to a port of a pod: the socket, and the first bytes that came by it.

        It is a websocket of `v4.channel.k8s.io`, whose messages begin with a byte for the channel.

        Raises:
            NotAnsweredError: the API does not forward it.

        """
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/portforward"
        key = frames.key()
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
        }
        asked = {"ports": str(port)}
        with self._http.stream("GET", path, params=asked, headers=headers) as answer:
            told = answer.headers.get("sec-websocket-accept")
            if answer.status_code != 101 or told != frames.answer(key):
                raise NotAnsweredError(f"no port forward to {pod}: status {answer.status_code}")
            stream = answer.extensions["network_stream"]
            # The server speaks first, and some of that may have come with its headers.
            first = stream.read(_CHUNK, timeout=_FIRST)
            yield stream.get_extra_info("socket"), first

    def delete(self, kind: str, name: str) -> None:
        """Remove an object, in order; one that is not there is left alone."""
        client = self._client
        options: dict[str, Any] = {"grace_period": GRACE} if kind == "Pod" else {}
        if kind == "Job":
            options["cascade"] = self._cascade  # its pods as well
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
