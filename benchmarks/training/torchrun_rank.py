"""One rank under `torchrun`, with a checkpoint every few steps: FOLDER EVERY TIMEOUT."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import job
import torch
import torch.distributed as dist


def main() -> None:
    """Train from the last checkpoint on, until killed."""
    folder, every, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    job.tell_pid(folder, rank)
    told = job.Told(folder, str(rank))
    model = job.model()
    optimizer = job.optimizer(model)
    step = 0
    saved = folder / "checkpoint"
    if saved.exists():
        state = torch.load(saved)
        step = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    while True:
        optimizer.zero_grad()
        job.loss(model, rank, step)
        mean = job.gradients(model)
        dist.all_reduce(mean)
        job.use(model, mean / size)
        optimizer.step()
        step += 1
        if rank == 0 and step % every == 0:
            state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, folder / "checkpoint.new")
            (folder / "checkpoint.new").replace(saved)
        told.step(step, size)


if __name__ == "__main__":
    main()
