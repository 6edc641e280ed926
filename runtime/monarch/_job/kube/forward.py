"""Port forwards through the Kubernetes API, for a program outside of the cluster."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from monarch._job.attach import lead

if TYPE_CHECKING:
    from collections.abc import Callable

    from monarch._job.kube.api import Api

_DATA, _ERROR = 0, 1  # channels of the one port of a connection
_CHUNK = 1 << 16


class Forwards:
    """Ways to pods through the API, as long as this program lives.

    Each is a Unix socket in a folder of this user's alone; each connection to it is one to the API.
    """

    def __init__(self, connect: Callable[[], Api]) -> None:
        self._connect = connect
        self._api: Api | None = None
        self._folder: str | None = None
        self._doors: dict[str, socket.socket] = {}  # by the URL that leads to it

    def open(self, url: str, pod: str, port: int) -> None:
        """Lead links to `url` to this port of a pod.

        Raises:
            JobError: the API cannot be reached.

        """
        if url in self._doors:
            return
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="monarch-kube-")
        if self._api is None:
            self._api = self._connect()
        path = f"{self._folder}/{len(self._doors)}"
        door = self._doors[url] = socket.socket(socket.AF_UNIX)
        door.bind(path)
        door.listen()
        api = self._api
        threading.Thread(
            target=_accept, args=(door, api, pod, port), name="monarch-forward", daemon=True
        ).start()
        lead(url, path)

    def close(self) -> None:
        """End all of them."""
        doors, self._doors = self._doors, {}
        for url, door in doors.items():
            lead(url, None)
            with contextlib.suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)  # wakes who accepts
            door.close()
        if self._api is not None:
            self._api.close()
            self._api = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _accept(door: socket.socket, api: Api, pod: str, port: int) -> None:
    while True:
        try:
            guest, _ = door.accept()
        except OSError:
            return
        threading.Thread(
            target=_forward, args=(guest, api, pod, port), name="monarch-forward", daemon=True
        ).start()


def _forward(guest: socket.socket, api: Api, pod: str, port: int) -> None:
    """Carry one connection; whoever dialled it finds it closed where the pod does not take it."""
    with guest, contextlib.suppress(Exception), api.forward(pod, port) as there:
        back = threading.Thread(
            target=_back, args=(there, guest), name="monarch-forward", daemon=True
        )
        back.start()
        with contextlib.suppress(OSError):
            while data := guest.recv(_CHUNK):
                there.send_bytes(bytes([_DATA]) + data)


def _back(there: Any, guest: socket.socket) -> None:
    """Carry what the pod says; each channel begins with the number of its port."""
    begun = set()
    with contextlib.suppress(Exception):
        while True:
            message = there.receive_bytes()
            channel, data = message[0], message[1:]
            if channel not in begun:
                begun.add(channel)
            elif channel == _ERROR:
                break
            else:
                guest.sendall(data)
    with contextlib.suppress(OSError):
        guest.shutdown(socket.SHUT_RDWR)
