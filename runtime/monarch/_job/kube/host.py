"""What a pod of a KubernetesJob runs: a host that serves at its pod's address.

Arguments: the file with the secret, the pod's IP address, the address to bind where that is not
it, the port, the pod's name, and after how many seconds without a program a pod ends whose job was
not stored.
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
    path, ip, bind, port, pod, seconds = sys.argv[1:]
    os.environ["MONARCH_NODE_ID"] = pod
    # Mounted by the kubelet for this container alone, with a mode that may be its group's as well.
    secret.adopt(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    address = url(ip, int(port))
    with Serving(f"{address}@tcp://{bind}:{port}" if bind else address) as service:
        lease = Lease(service.here, float(seconds))
        print(f"serves at {service.address}", flush=True)  # noqa: T201 - to the pod's log
        while not service.ended.wait(_LOOK) and not lease.expired():
            pass


if __name__ == "__main__":
    main()
