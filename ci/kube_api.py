"""The HTTP of the stand-in for a Kubernetes API server, as core v1 and batch v1 have it.

Objects have a uid and a resourceVersion; a name that is taken is 409; lists and watches take label
selectors; a watch goes on from a version, or is 410 Gone; the removal of a pod is graceful, that of
a Job takes its pods along; quotas are 403; a port of a pod is forwarded over a websocket.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from ci.kube import Cluster, Key

_PATH = re.compile(
    r"/(?:api/v1|apis/batch/v1)/namespaces/([^/]+)/(pods|secrets|jobs)(?:/([^/]+))?(/portforward)?"
)
_LISTS = {"pods": "PodList", "secrets": "SecretList", "jobs": "JobList"}
_VERSIONS = {"pods": "v1", "secrets": "v1", "jobs": "batch/v1"}
_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of RFC 6455
_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10
_DATA, _ERROR = 0, 1
_CHUNK = 1 << 16


class Handler(BaseHTTPRequestHandler):
    """The API of one cluster."""

    api: Cluster
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """One object, a list of them, what changes, or a port of a pod."""
        with self._request() as (key, query, forward):
            if key is None:
                return
            waits = "watch" in query
            what = f"FORWARD {key[2]}" if forward else f"{'WATCH' if waits else 'GET'} {key[1]}"
            self.api.asked.append(what)
            if not forward and not waits:
                if key[2]:
                    self._object(key)
                else:
                    self._list(key, query)
                return
        if forward:
            self._forward(key, int(query["ports"][0]))
        else:
            self._watch(key, query)

    def do_POST(self) -> None:
        """A new object."""
        size = int(self.headers.get("Content-Length", 0))
        made = json.loads(self.rfile.read(size))
        with self._request() as (where, _query, _forward):
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
        with self._request() as (key, query, _forward):
            if key is None:
                return
            found = self.api.objects.get(key)
            if found is None:
                self._refuse(404, "NotFound", f'{key[1]} "{key[2]}" not found')
            elif key[1] == "pods":
                grace = options.get("gracePeriodSeconds", query.get("gracePeriodSeconds", [30])[0])
                self._end(key, found, int(grace))
                self._answer(200, found)
            else:
                del self.api.objects[key]
                for other, one in self.api.objects.items():
                    if one["metadata"].get("labels", {}).get("job-name") == key[2]:
                        self._end(other, one, 30)
                self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _end(self, key: Key, pod: dict[str, Any], grace: int) -> None:
        if not pod["metadata"].get("deletionTimestamp"):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            pod["metadata"]["deletionGracePeriodSeconds"] = grace
            self.api.touch("MODIFIED", key, pod)

    @contextlib.contextmanager
    def _request(self) -> Any:
        parts = urlsplit(self.path)
        match = _PATH.fullmatch(parts.path)
        told = self.headers.get("Authorization", "")
        with self.api.lock:
            if self.api.away:
                self._refuse(503, "ServiceUnavailable", "the server is currently unavailable")
                yield None, {}, ""
            elif self.api.bearer and told != f"Bearer {self.api.bearer}":
                self._refuse(401, "Unauthorized", "Unauthorized")
                yield None, {}, ""
            elif match is None:
                self._refuse(404, "NotFound", f"no such path: {parts.path}")
                yield None, {}, ""
            else:
                yield (match[1], match[2], match[3] or ""), parse_qs(parts.query), match[4]

    def _object(self, key: Key) -> None:
        found = self.api.objects.get(key)
        if found is None:
            self._refuse(404, "NotFound", f'{key[1]} "{key[2]}" not found')
        else:
            self._answer(200, found)

    def _list(self, key: Key, query: dict[str, list[str]]) -> None:
        found = [
            one
            for other, one in self.api.objects.items()
            if other[:2] == key[:2] and _selected(one, query)
        ]
        metadata = {"resourceVersion": str(self.api.version)}
        document = {"kind": _LISTS[key[1]], "apiVersion": _VERSIONS[key[1]], "metadata": metadata}
        self._answer(200, {**document, "items": found})

    def _watch(self, key: Key, query: dict[str, list[str]]) -> None:
        """Events since a version, a line of JSON each, until the time is over."""
        until = time.monotonic() + int(query.get("timeoutSeconds", ["60"])[0])
        seen = int(query.get("resourceVersion", ["0"])[0])
        if self.api.watches not in {200, 410}:
            self._refuse(self.api.watches, "Forbidden", "pods is forbidden: cannot watch")
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if self.api.watches == 410:
            status = self._status(410, "Expired", f"too old resource version: {seen}")
            self._line({"type": "ERROR", "object": status})
            return
        while time.monotonic() < until:
            with self.api.changed:
                new = [one for one in self.api.events if one[0] > seen]
                if not new:
                    self.api.changed.wait(0.2)
                    continue
            seen = new[-1][0]
            for _, event, other, found in new:
                if (other[:2] == key[:2] and _selected(found, query)) and not self._line(
                    {"type": event, "object": found}
                ):
                    return

    def _line(self, document: dict[str, Any]) -> bool:
        """Write one; False where nobody reads any more."""
        try:
            self.wfile.write(json.dumps(document).encode() + b"\n")
            self.wfile.flush()
        except OSError:
            return False
        return True

    def _forward(self, key: Key, port: int) -> None:
        """A websocket of `v4.channel.k8s.io`, each message with a byte for its channel."""
        self.close_connection = True
        word = hashlib.sha1(  # noqa: S324 - RFC 6455 wants it
            f"{self.headers['Sec-WebSocket-Key']}{_MAGIC}".encode()
        ).digest()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(word).decode())
        self.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
        self.end_headers()
        for channel in (_DATA, _ERROR):
            self._send(bytes([channel]) + struct.pack("<H", port))
        try:
            pod = self.api.connect(key, port)
        except (OSError, KeyError) as error:
            self._send(bytes([_ERROR]) + f"error forwarding port {port}: {error}".encode())
            self._frame(_CLOSE, b"")
            return
        with pod:
            threading.Thread(target=self._back, args=(pod,), daemon=True).start()
            with contextlib.suppress(OSError):
                for data in self._messages():
                    pod.sendall(data[1:])
            with contextlib.suppress(OSError):
                pod.shutdown(socket.SHUT_RDWR)

    def _back(self, pod: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):  # closed by the other side, or by this one
            while data := pod.recv(_CHUNK):
                self._send(bytes([_DATA]) + data)
            self._frame(_CLOSE, b"")

    def _send(self, data: bytes) -> None:
        self._frame(_BINARY, data)

    def _frame(self, kind: int, data: bytes) -> None:
        size = len(data)
        head = bytes([0x80 | kind])
        if size < 126:
            head += bytes([size])
        else:
            head += (
                struct.pack("!BH", 126, size) if size < 1 << 16 else struct.pack("!BQ", 127, size)
            )
        self.wfile.write(head + data)
        self.wfile.flush()

    def _messages(self) -> Any:
        """What the client sends, until it closes."""
        while True:
            first, second = self._read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self._read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._read(8))
            mask = self._read(4)
            data = bytes(
                a ^ b for a, b in zip(self._read(size), mask * (size // 4 + 1), strict=False)
            )
            if first & 0xF == _CLOSE:
                return
            if first & 0xF == _PING:
                self._frame(_PONG, data)
            elif data:
                yield data

    def _read(self, size: int) -> bytes:
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionResetError
        return data

    @staticmethod
    def _status(code: int, reason: str, message: str) -> dict[str, Any]:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        return {**status, "reason": reason, "message": message}

    def _refuse(self, code: int, reason: str, message: str) -> None:
        self._answer(code, self._status(code, reason, message))

    def _answer(self, code: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(data)


def _selected(one: dict[str, Any], query: dict[str, list[str]]) -> bool:
    """Whether the label selector of a request matches an object."""
    text = query.get("labelSelector", [""])[0]
    wanted = dict(part.split("=", 1) for part in text.split(",") if part)
    return wanted.items() <= (one["metadata"].get("labels") or {}).items()
