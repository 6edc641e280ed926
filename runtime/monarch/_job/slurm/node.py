"""What a node of a SLURM job runs: a host that serves until it is no longer wanted.

Arguments: the job's folder, the address to bind and the port, this host's rank (or the variable
that has it), its generation, and "alone" where no other host of the job can be on its node. SLURM's
variables say the rest.
"""

from __future__ import annotations

import os
import sys
import time

from monarch._job.interface import url
from monarch._job.slurm.folder import EXPIRES, Arrival, JobFolder
from monarch._job.worker import Serving
from monarch._link import secret
from monarch.errors import SecretError

_LOOK = 2.0  # seconds between two looks at the folder
_PLANNED, _SOON = 60.0, 0.1  # seconds for the client to write the plan, and between two looks then
_ENOENT = (FileNotFoundError, NotADirectoryError)


def main() -> None:
    """Serve, and end with status 0 when the job has no use for this host any more."""
    path, bind, port, rank, generation, company = sys.argv[1:]
    rank = os.environ.get(rank, rank)
    restart = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
    place = _Place(JobFolder(path), int(rank), int(generation), restart)
    if not place.expected():
        print(f"host {rank} is not in the plan of {path} any more", file=sys.stderr)  # noqa: T201 - to its log
        return
    try:
        secret.adopt(place.folder.key().hand_down())
    except SecretError as error:
        sys.exit(f"host {rank}: {error}")
    node = os.environ.get("SLURMD_NODENAME", os.uname().nodename)
    name = node if company == "alone" else f"{node}#{rank}"
    os.environ["MONARCH_NODE_ID"] = name
    address = url(bind, int(port), os.environ.get("SLURM_SUBMIT_HOST", ""))
    with Serving(address) as service:
        arrival = Arrival(service.address, name, node, os.getpid(), restart)
        place.folder.arrive(place.rank, place.generation, arrival)
        while not service.ended.wait(_LOOK) and place.wanted():
            pass


class _Place:
    """Where this host stands in its job."""

    def __init__(self, folder: JobFolder, rank: int, generation: int, restart: int) -> None:
        self.folder = folder
        self.rank = rank
        self.generation = generation
        self._restart = restart
        self._lease = 0
        self._renewed = time.monotonic()

    def expected(self) -> bool:
        """Whether the plan has this host; waits for the client to write it."""
        until = time.monotonic() + _PLANNED
        while self._planned() is None and time.monotonic() < until:
            time.sleep(_SOON)
        return self.wanted()

    def _planned(self) -> int | None:
        """The generation that is planned at this rank, None where the plan is not that far."""
        try:
            planned = self.folder.planned().get(self.rank)
        except (OSError, ValueError):
            return None
        if planned is None or planned.generation < self.generation:
            return None
        return planned.generation

    def wanted(self) -> bool:
        """Whether the job still has this host here, and a client or the wish to outlive it."""
        try:
            planned = self.folder.planned().get(self.rank)
            lease = self.folder.lease()
            superseded = self.folder.superseded(self.rank, self.generation, self._restart)
        except _ENOENT:
            return False
        except (OSError, ValueError):  # a shared file system that is away for a while
            return True
        now = time.monotonic()
        if lease != self._lease:
            self._lease, self._renewed = lease, now
        expired = lease != 0 and now - self._renewed > EXPIRES
        return (
            planned is not None
            and planned.generation == self.generation
            and not superseded
            and not expired
        )


if __name__ == "__main__":
    main()
