"""A stand-in for a Kubernetes API server, and a hollow kubelet that runs pods as processes here.

No real control plane: what jobs ask of one, over HTTP (see `kube_api`). The kubelet gives each pod
a loopback address of its own (and has it listen there alone, as all others are other pods') or,
with a `network`, a host of that (a network namespace, which this machine does not reach). It mounts
Secrets in a folder, expands variables in commands, probes readiness by TCP and reports ends. A
controller makes the pods of Indexed Jobs, and others in place of those that fail. There are no
images: one is known, or cannot be pulled.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
import uuid
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from ci.kube_api import Handler

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from ci.rigs.namespaces import Host, Network

    Key = tuple[str, str, str]  # namespace, kind, name

_TICK = 0.05
_LOG_BYTES = 2048  # of a container's log at most, in the status of one that failed
_INDEX = "batch.kubernetes.io/job-completion-index"


class Cluster:
    """The stand-in; a context manager.

    Attributes:
        images: those that can be pulled.
        quota: pods that a namespace may have; None for any number.
        capacity: pods that run at a time; None for any number.
        away: whether the API answers 503.
        watches: the status of a watch, where it is not allowed (403), too late (410) or not to be
            had (503); 200 for one that goes on.
        asked: the requests that were answered, as `GET pods`, `WATCH pods` or `FORWARD name`.

    """

    def __init__(self, folder: Path, network: Network | None = None, *, tls: bool = False) -> None:
        self.folder = folder
        self._tls = tls
        self.images = {"monarch:test"}
        self.quota: int | None = None
        self.capacity: int | None = None
        self.away = False
        self.watches = 200
        self.bearer = ""  # of who may ask; anybody may where it is empty
        self.asked: list[str] = []
        self.created: list[str] = []
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.objects: dict[Key, dict[str, Any]] = {}
        self.events: list[tuple[int, str, Key, dict[str, Any]]] = []
        self.version = 1
        self._network = network
        self._hosts: dict[Key, Host] = {}
        self._addresses = 0
        self._ended = threading.Event()
        self._programs: dict[Key, subprocess.Popen[bytes]] = {}
        self._killing: dict[Key, float] = {}
        self._server: ThreadingHTTPServer | None = None
        self._kubelet = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        handler = type("_Handler", (Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if self._tls:
            self._server.socket = self._certified().wrap_socket(self._server.socket, True)
        self._server.daemon_threads = True
        self._server.block_on_close = False
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

    @property
    def url(self) -> str:
        """Where the API is."""
        assert self._server is not None  # noqa: S101 - open
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._server.server_port}"

    @property
    def certificate(self) -> Path:
        """The authority that has signed the API's certificate: itself."""
        return self.folder / "ca.crt"

    def _certified(self) -> ssl.SSLContext:
        key = self.folder / "ca.key"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
                *("-subj", "/CN=stand-in", "-addext", "subjectAltName=IP:127.0.0.1"),
                *("-keyout", str(key), "-out", str(self.certificate)),
            ],
            check=True,
            capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        return context

    def kubeconfig(self) -> Path:
        """A kubeconfig file that leads here."""
        path = self.folder / "kubeconfig"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": self.bearer} if self.bearer else {}}],
        }
        path.write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML
        return path

    def names(self, kind: str) -> list[str]:
        """Objects of a kind ("pods", "secrets", "jobs") that are there."""
        with self.lock:
            return sorted(name for _, what, name in self.objects if what == kind)

    def pid(self, name: str) -> int:
        """The process of a pod."""
        with self.lock:
            return next(one.pid for key, one in self._programs.items() if key[2] == name)

    def update(self, key: Key, **status: Any) -> None:
        """Change a pod's status, as a kubelet does."""
        with self.lock:
            found = self.objects.get(key)
            if found is not None:
                found["status"] = {**found.get("status", {}), **status}
                self.touch("MODIFIED", key, found)

    def touch(self, event: str, key: Key, found: dict[str, Any]) -> None:
        """A new resourceVersion, and an event for who watches."""
        with self.changed:
            self.version += 1
            found["metadata"]["resourceVersion"] = str(self.version)
            self.events.append((self.version, event, key, copy.deepcopy(found)))
            self.changed.notify_all()

    def put(self, key: Key, made: dict[str, Any]) -> None:
        """A new object."""
        made["metadata"] |= {"uid": str(uuid.uuid4()), "namespace": key[0]}
        if key[1] == "pods":
            made["status"] = {"phase": "Pending"}
        self.objects[key] = made
        self.created.append(key[2])
        self.touch("ADDED", key, made)

    def connect(self, key: Key, port: int) -> socket.socket:
        """A connection to a port of a pod, as from within it.

        Raises:
            OSError: nothing listens there.

        """
        host = self._hosts.get(key)
        if host is not None:
            return host.connect(("127.0.0.1", port))
        return socket.create_connection((self.objects[key]["status"]["podIP"], port), 5.0)

    # The kubelet and the controller of Jobs.

    def _run(self) -> None:
        while not self._ended.wait(_TICK):
            with self.lock:
                jobs = [(key, one) for key, one in self.objects.items() if key[1] == "jobs"]
                for key, one in jobs:
                    self._control(key, one)
                pods = [(key, one) for key, one in self.objects.items() if key[1] == "pods"]
            for key, one in pods:
                self._step(key, one)

    def _control(self, key: Key, job: dict[str, Any]) -> None:
        """Make the pods of an Indexed Job that are missing."""
        pods = [
            one
            for (namespace, kind, _), one in self.objects.items()
            if (namespace, kind) == (key[0], "pods")
            and one["metadata"]["labels"].get("job-name") == key[2]
        ]
        failed = [one for one in pods if one["status"]["phase"] == "Failed"]
        if len(failed) > job["spec"]["backoffLimit"]:
            return
        left = [one for one in pods if one not in failed]
        there = {one["metadata"]["labels"][_INDEX] for one in left}
        for index in map(str, range(job["spec"]["completions"])):
            if index in there:
                continue
            made: dict[str, Any] = copy.deepcopy(job["spec"]["template"])
            made |= {"apiVersion": "v1", "kind": "Pod"}
            name = f"{key[2]}-{index}-{uuid.uuid4().hex[:5]}"
            labels = made["metadata"].setdefault("labels", {})
            labels |= {_INDEX: index, "job-name": key[2]}
            made["metadata"]["name"] = name
            self.put((key[0], "pods", name), made)

    def _step(self, key: Key, pod: dict[str, Any]) -> None:
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
            policy = pod["spec"]["containers"][0].get("terminationMessagePolicy")
            if code and policy == "FallbackToLogsOnError":
                log = (self.folder / f"{key[2]}.log").read_bytes()[-_LOG_BYTES:]
                ended["message"] = log.decode(errors="replace")
            self.update(
                key,
                phase="Failed" if code else "Succeeded",
                containerStatuses=[_container(pod, {"terminated": ended})],
                conditions=[{"type": "Ready", "status": "False"}],
            )
        elif pod["status"].get("conditions") is None:
            port = pod["spec"]["containers"][0]["readinessProbe"]["tcpSocket"]["port"]
            with contextlib.suppress(OSError):
                self.connect(key, port).close()
                self.update(key, conditions=[{"type": "Ready", "status": "True"}])

    def _begin(self, key: Key, pod: dict[str, Any]) -> None:
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
            if pod["status"].get("containerStatuses") is None:
                self.update(key, containerStatuses=[_container(pod, state)])
            return
        ip, before = self._place(key)
        with (self.folder / f"{key[2]}.log").open("wb") as log:
            self._programs[key] = subprocess.Popen(
                [*before, *self._command(key, pod, ip)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        with self.lock:
            pod["status"].pop("conditions", None)
        self.update(key, phase="Running", podIP=ip)

    def _place(self, key: Key) -> tuple[str, list[str]]:
        """An address for a pod, and what runs a command where that is."""
        if self._network is not None:
            used = {host.name for host in self._hosts.values()}
            host = next(one for one in self._network.hosts if one.name not in used)
            self._hosts[key] = host
            return host.address, host.command([])
        self._addresses += 1
        assert self._server is not None  # noqa: S101 - open
        apart, own = divmod(self._server.server_port, 256)  # clusters that run at once share none
        return f"127.{apart}.{own}.{self._addresses}", []

    def _command(self, key: Key, pod: dict[str, Any], ip: str) -> list[str]:
        """A container's command, with what it mounts where it is on this machine."""
        container = pod["spec"]["containers"][0]
        words = list(container["command"])
        for name, value in (("IP", ip), ("NAME", key[2])):
            words = [word.replace(f"$(MONARCH_POD_{name})", value) for word in words]
        if self._network is None:
            words = [ip if word == "*" else word for word in words]
        secrets = {one["name"]: one["secret"] for one in pod["spec"]["volumes"] if "secret" in one}
        for mount in container["volumeMounts"]:
            volume = secrets.get(mount["name"])
            if volume is None:
                continue
            folder = self.folder / key[2]
            folder.mkdir(mode=0o700, exist_ok=True)
            data = self.objects[key[0], "secrets", volume["secretName"]]["data"]
            for name, text in data.items():
                path = folder / name
                path.touch(mode=0o600)
                path.write_bytes(base64.b64decode(text))
                path.chmod(volume["defaultMode"])
            words = [word.replace(mount["mountPath"], str(folder)) for word in words]
        return [sys.executable if words[0] == "python" else words[0], *words[1:]]

    def _remove(
        self, key: Key, pod: dict[str, Any], program: subprocess.Popen[bytes] | None
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
            if self.objects.pop(key, None) is not None:
                self.touch("DELETED", key, pod)
        self._programs.pop(key, None)
        self._hosts.pop(key, None)


def _container(pod: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod's container, with all fields that one has to have."""
    container = pod["spec"]["containers"][0]
    fixed = {"imageID": "", "ready": False, "restartCount": 0, "state": state}
    return {"name": container["name"], "image": container["image"], **fixed}
