"""A line is fitted to points that are spread over four workers; one actor keeps the weights."""

from __future__ import annotations

import random
from typing import Any

from monarch.actor import Actor, current_rank, endpoint, this_host

WORKERS, POINTS, STEPS, RATE = 4, 200, 60, 0.4
SLOPE, OFFSET = 2.0, -1.0  # what the points were made from

Weights = tuple[float, float]


class ParameterServer(Actor):
    def __init__(self) -> None:
        self.weights: Weights = (0.0, 0.0)

    @endpoint
    def pull(self) -> Weights:
        return self.weights

    @endpoint
    def push(self, gradient: Weights) -> None:
        slope, offset = self.weights
        self.weights = (slope - RATE * gradient[0] / WORKERS, offset - RATE * gradient[1] / WORKERS)


class Worker(Actor):
    def __init__(self, server: Any) -> None:
        self.server = server
        chance = random.Random(current_rank()["workers"])  # noqa: S311 - points, no secret
        self.points = [
            (x, SLOPE * x + OFFSET) for x in (chance.uniform(-1, 1) for _ in range(POINTS))
        ]

    @endpoint
    async def step(self) -> float:
        """Mean squared error before the step, whose gradient goes to the server."""
        slope, offset = await self.server.pull.call_one()
        errors = [(x, slope * x + offset - y) for x, y in self.points]
        gradient = (
            2 * sum(error * x for x, error in errors) / POINTS,
            2 * sum(error for _, error in errors) / POINTS,
        )
        await self.server.push.call_one(gradient)
        return sum(error * error for _, error in errors) / POINTS


def main() -> None:
    host = this_host()
    server = host.spawn_procs(per_host={"servers": 1}).spawn("server", ParameterServer)
    procs = host.spawn_procs(per_host={"workers": WORKERS})
    workers = procs.spawn("workers", Worker, server)
    for step in range(STEPS):
        losses = list(workers.step.call().get().values())
        if step == 0:
            first = sum(losses)
    slope, offset = server.pull.call_one().get()
    print(f"loss at last, to that at first: {sum(losses) / first:.4f}")
    print(f"y = {slope:.2f} x + {offset:.2f}")


if __name__ == "__main__":
    main()
