"""A node dies in the middle of a job; healthy nodes go on, and the lost one is replaced in place.

Run it with `--slurm` where SLURM is, and without on any machine: hosts are then processes here.
"""

from __future__ import annotations

import os
import signal
import sys

from monarch.actor import Actor, ActorCrashError, endpoint
from monarch.mesh import ProcessMesh


class GPUTrainer(Actor):
    """Trains, as far as this example goes."""

    @endpoint
    def train_step(self, batch: int) -> tuple[str, int]:
        """Give the node that this ran on, and a result."""
        return os.environ["MONARCH_NODE_ID"], batch * batch

    @endpoint
    def lose_the_node(self) -> None:
        """Kill the host agent: what it runs ends with it."""
        with open(f"/proc/{os.getppid()}/stat") as file:  # noqa: PTH123 - the kernel's
            agent = int(file.read().rpartition(")")[2].split()[1])
        os.kill(agent, signal.SIGKILL)
        signal.pause()  # until the kernel is here, too


def main() -> None:
    """Lose a node, replace it, and go on."""
    if "--slurm" in sys.argv:
        mesh = ProcessMesh.from_slurm(nodes=4, gpus_per_node=2, spares=1)
    else:
        mesh = ProcessMesh.local(hosts=4, gpus_per_host=2, spares=1)
    trainers = mesh.spawn("trainer", GPUTrainer)
    for batch in range(4):
        if batch == 2:
            trainers.slice(hosts=1, gpus=0).lose_the_node.broadcast()
        try:
            results = trainers.train_step.call(batch).get()
        except ActorCrashError as failure:
            print(f"lost {failure.node_id}")
            mesh.replace_node(failure.node_id)
            results = trainers.train_step.call(batch).get()  # same handle, full mesh
        nodes = dict.fromkeys(node for node, _ in results.values())
        total = sum(result for _, result in results.values())
        print(f"step {batch}: {total} from", *nodes)
    mesh.stop().get()


if __name__ == "__main__":
    main()
