"""What a node of a SkyPilotJob runs: a host that serves at its node's address.

Arguments: the file with the secret, the port, the name of the cluster, and after how many seconds
without a program a host ends whose job was not stored. SkyPilot's variables say the rest.
"""

from __future__ import annotations

import os
import sys

from monarch._job.attached import Lease
from monarch._job.interface import url
from monarch._job.worker import Serving
from monarch._link import secret

_LOOK = 2.0  # seconds between two looks at the lease


def main() -> None:
    """Serve until a program shuts the host down, or has no use for it any more."""
    path, port, cluster, seconds = sys.argv[1:]
    rank = int(os.environ.get("SKYPILOT_NODE_RANK", "0"))
    ips = os.environ.get("SKYPILOT_NODE_IPS", "").split()
    os.environ["MONARCH_NODE_ID"] = node_id(cluster, rank, len(ips))
    os.environ[secret.FILE_VARIABLE] = path
    os.environ.pop(secret.FD_VARIABLE, None)
    ip = ips[rank] if rank < len(ips) else ""
    with Serving(url(ip, int(port))) as service:
        lease = Lease(service.here, float(seconds))
        print(f"serves at {service.address}", flush=True)  # noqa: T201 - to the job's log
        while not service.ended.wait(_LOOK) and not lease.expired():
            pass


def node_id(cluster: str, rank: int, nodes: int) -> str:
    """The id in its job of a node of this cluster, which has so many."""
    return f"{cluster}-{rank}" if nodes > 1 else cluster


if __name__ == "__main__":
    main()
