"""The hosts that a job has attached to: labelled, leased, and freed when the job ends."""

# ruff: noqa: SLF001 - meshes are of the same package

from __future__ import annotations

import contextlib
import math
import time
from typing import TYPE_CHECKING, Any

from monarch._actor.process import process
from monarch._job.attach import TRUST_ALL, attach_to_workers
from monarch.errors import StoppedError, SupervisionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from monarch._actor.process import Process
    from monarch._mesh.host_mesh import HostMesh
    from monarch.errors import LinkError

_FREE_SECONDS = 5.0  # for what this program runs on the hosts to stop before they end
EXPIRES = 300  # seconds without a program until an unstored job's host ends


class AttachedHosts:
    """The meshes of a job that this program has attached to."""

    def __init__(self, *, kept: bool = False) -> None:
        self._meshes: list[HostMesh] = []
        self._kept = kept

    def attach(self, name: str, hosts: Iterable[tuple[str, str]]) -> HostMesh:
        """The mesh of hosts that are each an address and the id in the job."""
        listed = list(hosts)
        mesh = attach_to_workers(
            ca=TRUST_ALL, workers=[address for address, _ in listed], name=name
        )
        for ref, (_, node) in zip(mesh._refs(), listed, strict=True):
            ref.node = node
        self._meshes.append(mesh)
        return mesh

    def free(self) -> None:
        """Stop what this program runs on the hosts, so that their end is no failure."""
        meshes, self._meshes = self._meshes, []
        for one in [one for mesh in meshes for one in mesh.stop_procs("the job was ended")]:
            with contextlib.suppress(TimeoutError, ConnectionError, SupervisionError, StoppedError):
                one.get(_FREE_SECONDS)

    def lease(self, mesh: HostMesh) -> None:
        """Tell hosts, each once it is reached, that this program wants them."""
        for ref in mesh._refs():
            self._tell(ref)

    def keep(self) -> None:
        """Have all hosts outlive this program."""
        self._kept = True
        for mesh in self._meshes:
            self.lease(mesh)

    def _tell(self, ref: Any) -> None:
        def reached(error: LinkError | None) -> None:
            if error is None:
                with contextlib.suppress(ConnectionError):
                    process().tell(ref.proc, "host_lease", self._kept)

        ref.then(reached)


class Lease:
    """At a host: which programs want it, and whether it is to end as none has for `seconds`.

    `waits`: for the first one, as long as it takes.
    """

    def __init__(self, here: Process, seconds: float, *, waits: bool = False) -> None:
        self._clients: set[int] = set()
        self._kept = False
        self._seconds = seconds
        self._since = math.inf if waits else time.monotonic()
        here.on("host_lease", self._renew)
        here.on_link_lost(self._lost)

    def keep(self) -> None:
        """Outlive whoever wants it now: its job was stored."""
        self._kept = True

    def expired(self) -> bool:
        """Whether nobody wants this host any more."""
        alone = not self._kept and not self._clients
        return alone and time.monotonic() - self._since > self._seconds

    def _renew(self, client: int, kept: object) -> None:
        self._clients.add(client)
        self._kept = self._kept or bool(kept)

    def _lost(self, peer: int) -> None:
        self._clients.discard(peer)
        self._since = time.monotonic()
