"""What a pod of a KubernetesJob runs: a host that serves at its pod's address.

Arguments: the file with the secret, the pod's IP address, the port and the pod's name. A pod whose
job was not stored ends when no program has been attached for five minutes.
"""

from __future__ import annotations

import os
import sys
import time

from monarch._job.interface import url
from monarch._job.worker import Serving
from monarch._link import secret

EXPIRES = 300.0  # seconds without a program until an unstored job's host ends
_LOOK = 5.0


def main() -> None:
    """Serve until a program shuts the host down, or has no use for it any more."""
    path, ip, port, pod = sys.argv[1:]
    os.environ["MONARCH_NODE_ID"] = pod
    # Mounted by the kubelet for this container alone, with a mode that may be its group's as well.
    secret.adopt(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    with Serving(url(ip, int(port))) as service:
        lease = _Lease(service.here)
        print(f"serves at {service.address}", flush=True)  # noqa: T201 - to the pod's log
        while not service.ended.wait(_LOOK) and not lease.expired():
            pass


class _Lease:
    """Which programs want this host."""

    def __init__(self, here: object) -> None:
        self._clients: set[int] = set()
        self._kept = False
        self._since = time.monotonic()
        here.on("host_lease", self._renew)  # type: ignore[attr-defined]
        here.on_link_lost(self._lost)  # type: ignore[attr-defined]

    def expired(self) -> bool:
        return not self._kept and not self._clients and time.monotonic() - self._since > EXPIRES

    def _renew(self, client: int, kept: object) -> None:
        self._clients.add(client)
        self._kept = self._kept or bool(kept)

    def _lost(self, peer: int) -> None:
        self._clients.discard(peer)
        self._since = time.monotonic()


if __name__ == "__main__":
    main()
