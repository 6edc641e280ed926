"""One replica under torchft, healed by the others: FOLDER RANK LIGHTHOUSE ADDRESS TIMEOUT."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import job
import torch.distributed as dist
from torchft import Manager, Optimizer, ProcessGroupGloo


def main() -> None:
    """Train until killed."""
    folder, rank, (lighthouse, address, seconds) = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    job.tell_pid(folder, rank)
    told = job.Told(folder, str(rank))
    model = job.model()
    inner = job.optimizer(model)

    def load(state: dict[str, Any]) -> None:
        model.load_state_dict(state["model"])
        inner.load_state_dict(state["optimizer"])

    wait = timedelta(seconds=float(seconds))
    store = dist.TCPStore(address, 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=wait),
        min_replica_size=1,
        load_state_dict=load,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": inner.state_dict()},
        replica_id=f"replica-{rank}",
        rank=0,
        world_size=1,
        store_addr=address,
        store_port=store.port,
        lighthouse_addr=lighthouse,
        hostname=address,
        timeout=wait,
    )
    optimizer = Optimizer(manager, inner)
    while True:
        before = manager.current_step()
        optimizer.zero_grad()
        job.loss(model, manager.participating_rank() or 0, before)
        mean = job.gradients(model)
        manager.allreduce(mean).wait()
        job.use(model, mean)
        optimizer.step()
        if manager.current_step() > before:
            told.step(manager.current_step(), manager.num_participants())


if __name__ == "__main__":
    main()
