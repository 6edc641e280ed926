"""Hosts from SLURM: two nodes work, one of them is given up, and another takes its place.

Run it where SLURM's client commands are, in a folder that the nodes see as well.
"""

from __future__ import annotations

import os

from monarch.actor import Actor, current_rank, endpoint
from monarch.job import SlurmJob


class Worker(Actor):
    @endpoint
    def where(self) -> str:
        return f"rank {current_rank().rank} on {os.environ['SLURMD_NODENAME']}"


def main() -> None:
    job = SlurmJob({"workers": 2}, monarch_port=0)  # any free port of each node
    state = job.state(cached_path=None)  # waits in the queue, and says so
    try:
        procs = state.workers.spawn_procs(per_host={"gpus": 2})
        for line in procs.spawn("workers", Worker).where.call().get().values():
            print(line)
        procs.stop().get()

        job.replace_node(next(iter(job.nodes)))
        procs = job.state(cached_path=None).workers.spawn_procs(per_host={"gpus": 2})
        for line in procs.spawn("workers", Worker).where.call().get().values():
            print("then", line)
    finally:
        job.kill()


if __name__ == "__main__":
    main()
