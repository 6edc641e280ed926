"""One run of `examples/elastic_ddp.py` with the model and the data of all.

FOLDER RANKS WORKER…: with workers, at these hosts, one a rank; what is left stands by.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(Path(__file__).parent)]

import elastic_ddp  # noqa: E402 - found by the line above
import job  # noqa: E402 - as above

from monarch.actor import HostMesh, attach_to_workers, current_rank  # noqa: E402 - as above
from monarch.job import JobState, JobTrait  # noqa: E402 - as above
from monarch.mesh import ProcessMesh  # noqa: E402 - as above

if TYPE_CHECKING:
    import torch


class Loaded(elastic_ddp.Trainer):
    """A rank with steps of a realistic length."""

    def __init__(self) -> None:
        super().__init__()
        job.tell_pid(os.environ["GOODPUT_FOLDER"], current_rank().rank)

    def new_model(self) -> torch.nn.Module:
        """Give the model before its first step."""
        return job.model()

    def batch(self, rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Give the samples of a rank in a step, and what the model should make of them."""
        return job.batch(rank, step)


class Served(JobTrait):
    """Hosts that serve already."""

    def __init__(self, workers: list[str], ranks: int) -> None:
        super().__init__()
        self._used, self._spares = workers[:ranks], workers[ranks:]

    def _create(self, client_script: str | None) -> None:
        pass

    def _state(self) -> JobState:
        return JobState({"hosts": _attached(*self._used), "spares": _attached(*self._spares)})

    def _kill(self) -> None:
        pass

    def can_run(self, spec: JobTrait) -> bool:
        """No program goes on with hosts of another."""
        return spec is self


def _attached(*workers: str) -> HostMesh:
    return attach_to_workers(ca="trust_all_connections", workers=list(workers))


def main() -> None:
    """Train until killed."""
    folder, ranks, *workers = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
    if workers:
        procs = ProcessMesh(
            Served(workers, ranks),
            nodes=ranks,
            gpus_per_node=1,
            spares=len(workers) - ranks,
            spare_procs=1,
        )
    else:
        procs = elastic_ddp.processes(ranks)
    training = elastic_ddp.Training(procs, trainer=Loaded)
    told = job.Told(folder, "all")
    for step, _ in training.run(sys.maxsize):
        told.step(step + 1, ranks)


if __name__ == "__main__":
    # By its name, so that processes import it as well.
    import ours

    ours.main()
