"""Loaders read ahead of trainers: each loader sends batches into its trainer's port."""

from __future__ import annotations

from typing import Any

from monarch.actor import Actor, Channel, Port, current_rank, endpoint, this_host

TRAINERS, SAMPLES, BATCH, AHEAD = 2, 1000, 32, 4


class Loader(Actor):
    """Reads the samples of one trainer: every TRAINERS-th number."""

    def __init__(self) -> None:
        rank = current_rank()["rank"]
        self.samples = iter(range(rank, SAMPLES, TRAINERS))

    @endpoint
    def load(self, batches: int, into: Port[list[int]]) -> None:
        """Send that many batches; an empty one is the end."""
        for _ in range(batches):
            into.send([sample for _, sample in zip(range(BATCH), self.samples, strict=False)])


class Trainer(Actor):
    def __init__(self, loaders: Any) -> None:
        self.loader = loaders.slice(rank=current_rank()["rank"])

    @endpoint
    async def epoch(self) -> tuple[int, int]:
        """Batches trained on, and the sum of their samples."""
        port, batches = Channel[list[int]].open()
        port.return_undeliverable = False  # what is read ahead of the end, nobody waits for
        self.loader.load.broadcast(AHEAD, port)
        count = total = 0
        while batch := await batches.recv():
            self.loader.load.broadcast(1, port)  # it reads one more while this one is used
            count, total = count + 1, total + sum(batch)
        return count, total


def main() -> None:
    host = this_host()
    loaders = host.spawn_procs(per_host={"rank": TRAINERS}).spawn("loaders", Loader)
    trainers = host.spawn_procs(per_host={"rank": TRAINERS}).spawn("trainers", Trainer, loaders)
    totals = 0
    for point, (count, total) in trainers.epoch.call().get().items():
        print(f"trainer {point['rank']}: {count} batches, sum {total}")
        totals += total
    print("complete:", totals == sum(range(SAMPLES)))


if __name__ == "__main__":
    main()
