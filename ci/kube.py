"""A stand-in for a Kubernetes API server, and a hollow kubelet that runs pods as processes here.

No real control plane: what jobs ask of one, over HTTP, as core v1 has it. Objects get a uid and a
resourceVersion; a name that is taken is 409; lists take label selectors; the removal of a pod is
graceful (deletionTimestamp, then SIGTERM, then SIGKILL after its grace period); quotas are 403. The
kubelet gives each pod a loopback address of its own, mounts Secrets in a folder, expands variables
in commands, probes readiness by TCP and reports ends. There are no namespaces of the kernel, no
images (an image is known or cannot be pulled) and no watches.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

_PATH = re.compile(r"/api/v1/namespaces/([^/]+)/(pods|secrets)(?:/([^/]+))?")
_TICK = 0.05
_LISTS = {"pods": "PodList", "secrets": "SecretList"}


class Cluster:
    """The stand-in; a context manager.

    Attributes:
        images: those that can be pulled.
        quota: pods that a namespace may have; None for any number.
        capacity: pods that run at a time; None for any number.
        away: whether the API answers 503.

    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = {"monarch:test"}
        self.quota: int | None = None
        self.capacity: int | None = None
        self.away = False
        self.created: list[str] = []
        self.lock = threading.RLock()
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._version = 1
        self._addresses = 0
        self._ended = threading.Event()
        self._programs: dict[tuple[str, str, str], subprocess.Popen[bytes]] = {}
        self._killing: dict[tuple[str, str, str], float] = {}
        self._server: ThreadingHTTPServer | None = None
        self._kubelet = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        handler = type("_Handler", (_Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._kubelet.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._kubelet.join()
        for program in self._programs.values():
            program.kill()
            program.wait()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def kubeconfig(self) -> Path:
        """A kubeconfig file that leads here."""
        assert self._server is not None  # noqa: S101 - open
        path = self.folder / "kubeconfig"
        cluster = {"server": f"http://127.0.0.1:{self._server.server_port}"}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "me", "user": {}}],
        }
        path.write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML
        return path

    def names(self, kind: str) -> list[str]:
        """Objects of a kind ("pods", "secrets") that are there."""
        with self.lock:
            return sorted(name for _, what, name in self.objects if what == kind)

    def pid(self, name: str) -> int:
        """The process of a pod."""
        with self.lock:
            return next(one.pid for key, one in self._programs.items() if key[2] == name)

    def update(self, key: tuple[str, str, str], **status: Any) -> None:
        """Change a pod's status, as a kubelet does."""
        with self.lock:
            found = self.objects.get(key)
            if found is not None:
                found["status"] = {**found.get("status", {}), **status}
                self.touch(found)

    def touch(self, found: dict[str, Any]) -> None:
        """A new resourceVersion."""
        self._version += 1
        found["metadata"]["resourceVersion"] = str(self._version)

    def put(self, key: tuple[str, str, str], made: dict[str, Any]) -> None:
        """A new object."""
        made["metadata"] |= {"uid": str(uuid.uuid4()), "namespace": key[0]}
        if key[1] == "pods":
            made["status"] = {"phase": "Pending"}
        self.touch(made)
        self.objects[key] = made
        self.created.append(key[2])

    # The kubelet.

    def _run(self) -> None:
        while not self._ended.wait(_TICK):
            with self.lock:
                pods = [(key, one) for key, one in self.objects.items() if key[1] == "pods"]
            for key, one in pods:
                self._step(key, one)

    def _step(self, key: tuple[str, str, str], pod: dict[str, Any]) -> None:
        program = self._programs.get(key)
        if pod["metadata"].get("deletionTimestamp"):
            self._remove(key, pod, program)
        elif pod["status"]["phase"] in {"Failed", "Succeeded"}:
            return
        elif program is None:
            self._begin(key, pod)
        elif program.poll() is not None:
            code = program.returncode
            ended = {"exitCode": code if code >= 0 else 128 - code, "reason": "Error"}
            self.update(
                key,
                phase="Failed" if code else "Succeeded",
                containerStatuses=[_container(pod, {"terminated": ended})],
                conditions=[{"type": "Ready", "status": "False"}],
            )
        elif pod["status"].get("conditions") is None:
            port = pod["spec"]["containers"][0]["readinessProbe"]["tcpSocket"]["port"]
            with contextlib.suppress(OSError):
                socket.create_connection((pod["status"]["podIP"], port), 0.2).close()
                self.update(key, conditions=[{"type": "Ready", "status": "True"}])

    def _begin(self, key: tuple[str, str, str], pod: dict[str, Any]) -> None:
        container = pod["spec"]["containers"][0]
        running = sum(one.poll() is None for one in self._programs.values())
        if self.capacity is not None and running >= self.capacity:
            text = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
            waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            if pod["status"].get("conditions") is None:
                self.update(key, conditions=[{**waits, "message": text}])
            return
        if container["image"] not in self.images:
            text = f'Back-off pulling image "{container["image"]}"'
            state = {"waiting": {"reason": "ImagePullBackOff", "message": text}}
            self.update(key, containerStatuses=[_container(pod, state)])
            return
        self._addresses += 1
        ip = f"127.9.{self._addresses >> 8}.{self._addresses & 255}"
        command = self._command(key[0], pod, ip)
        self._programs[key] = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=(log := (self.folder / f"{key[2]}.log").open("wb")),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        log.close()
        with self.lock:
            pod["status"].pop("conditions", None)
        self.update(key, phase="Running", podIP=ip)

    def _command(self, namespace: str, pod: dict[str, Any], ip: str) -> list[str]:
        """A container's command, with what it mounts where it is on this machine."""
        container = pod["spec"]["containers"][0]
        words = [word.replace("$(MONARCH_POD_IP)", ip) for word in container["command"]]
        secrets = {one["name"]: one["secret"] for one in pod["spec"]["volumes"] if "secret" in one}
        for mount in container["volumeMounts"]:
            volume = secrets.get(mount["name"])
            if volume is None:
                continue
            folder = self.folder / pod["metadata"]["name"]
            folder.mkdir(mode=0o700, exist_ok=True)
            data = self.objects[namespace, "secrets", volume["secretName"]]["data"]
            for name, text in data.items():
                path = folder / name
                path.touch(mode=0o600)
                path.write_bytes(base64.b64decode(text))
                path.chmod(volume["defaultMode"])
            words = [word.replace(mount["mountPath"], str(folder)) for word in words]
        return [sys.executable if words[0] == "python" else words[0], *words[1:]]

    def _remove(
        self,
        key: tuple[str, str, str],
        pod: dict[str, Any],
        program: subprocess.Popen[bytes] | None,
    ) -> None:
        if program is not None and program.poll() is None:
            if key not in self._killing:
                grace = pod["metadata"]["deletionGracePeriodSeconds"]
                self._killing[key] = time.monotonic() + grace
                program.terminate()
            elif time.monotonic() > self._killing[key]:
                program.kill()
            return
        with self.lock:
            self.objects.pop(key, None)
        self._programs.pop(key, None)


def _container(pod: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod's container, with all fields that one has to have."""
    container = pod["spec"]["containers"][0]
    fixed = {"imageID": "", "ready": False, "restartCount": 0, "state": state}
    return {"name": container["name"], "image": container["image"], **fixed}


class _Handler(BaseHTTPRequestHandler):
    """The API of one cluster."""

    api: Cluster
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """One object, or a list of them."""
        with self._request() as (key, query):
            if key is None:
                return
            if key[2]:
                self._object(key)
            else:
                self._list(key, query)

    def do_POST(self) -> None:
        """A new object."""
        size = int(self.headers.get("Content-Length", 0))
        made = json.loads(self.rfile.read(size))
        with self._request() as (where, _query):
            if where is None:
                return
            key = (where[0], where[1], made["metadata"]["name"])
            count = sum(one[:2] == key[:2] for one in self.api.objects)
            quota = self.api.quota
            if key in self.api.objects:
                self._refuse(409, "AlreadyExists", f'{key[1]} "{key[2]}" already exists')
            elif key[1] == "pods" and quota is not None and count >= quota:
                text = f'pods "{key[2]}" is forbidden: exceeded quota: team, limited: pods={quota}'
                self._refuse(403, "Forbidden", text)
            else:
                self.api.put(key, made)
                self._answer(201, made)

    def do_DELETE(self) -> None:
        """The removal of an object: of a pod in order, of others at once."""
        size = int(self.headers.get("Content-Length", 0))
        options = json.loads(self.rfile.read(size) or b"{}")
        with self._request() as (key, query):
            if key is None:
                return
            found = self.api.objects.get(key)
            if found is None:
                self._refuse(404, "NotFound", f'{key[1]} "{key[2]}" not found')
            elif key[1] != "pods":
                del self.api.objects[key]
                self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
            else:
                grace = options.get("gracePeriodSeconds", query.get("gracePeriodSeconds", [30])[0])
                if not found["metadata"].get("deletionTimestamp"):
                    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                    found["metadata"]["deletionGracePeriodSeconds"] = int(grace)
                    self.api.touch(found)
                self._answer(200, found)

    @contextlib.contextmanager
    def _request(self) -> Any:
        parts = urlsplit(self.path)
        match = _PATH.fullmatch(parts.path)
        with self.api.lock:
            if self.api.away:
                self._refuse(503, "ServiceUnavailable", "the server is currently unavailable")
                yield None, {}
            elif match is None:
                self._refuse(404, "NotFound", f"no such path: {parts.path}")
                yield None, {}
            else:
                yield (match[1], match[2], match[3] or ""), parse_qs(parts.query)

    def _object(self, key: tuple[str, str, str]) -> None:
        found = self.api.objects.get(key)
        if found is None:
            self._refuse(404, "NotFound", f'{key[1]} "{key[2]}" not found')
        else:
            self._answer(200, found)

    def _list(self, key: tuple[str, str, str], query: dict[str, list[str]]) -> None:
        wanted = dict(
            part.split("=", 1) for part in query.get("labelSelector", [""])[0].split(",") if part
        )
        found = [
            one
            for (namespace, kind, _), one in self.api.objects.items()
            if (namespace, kind) == key[:2]
            and wanted.items() <= (one["metadata"].get("labels") or {}).items()
        ]
        document = {"kind": _LISTS[key[1]], "apiVersion": "v1", "metadata": {}, "items": found}
        self._answer(200, document)

    def _refuse(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        self._answer(code, {**status, "reason": reason, "message": message})

    def _answer(self, code: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(data)
