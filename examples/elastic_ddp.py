"""Data-parallel training that a lost rank does not stop.

Each rank holds the model and averages gradients with the others over `torch.distributed`, gloo on
CPUs and NCCL or RCCL on GPUs. The program holds the store by which the ranks of a group find each
other, and forms a new group, under a prefix of its own, when a rank has been replaced. The others
keep their processes, weights and optimizers; the new one gets both from one of them. Collectives
are not waited for blindly, so that a peer that hangs holds nobody. The store is an actor and not
torch's own over TCP, which looks up the name of each address that it has a connection with: where
that is not answered, a group would wait for it, 5 s and more.

    python examples/elastic_ddp.py --steps 60 --kill-at 20 --kill-at 40
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

import monarch.actor
from monarch.actor import (
    Actor,
    ActorCrashError,
    ActorError,
    concurrent_endpoint,
    current_rank,
    endpoint,
    this_host,
    this_proc,
)
from monarch.config import configure

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT = timedelta(seconds=30)
SAMPLES = 64
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def group_of(store: Any, rank: int, size: int) -> Any:
    """Make the group of all ranks that find each other by `store`."""
    if DEVICE.type == "cuda":
        return dist.ProcessGroupNCCL(store, rank, size)
    return dist.ProcessGroupGloo(store, rank, size, WAIT)


class AbandonedError(RuntimeError):
    """A group was given up, in a step, whose gradients were not used, or while it was formed."""


class Values(Actor):
    """What the ranks of a group tell each other before they have connections."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.changed = asyncio.Condition()
        self.forming = 0

    @concurrent_endpoint
    async def begin(self, generation: int) -> None:
        """Forget what older groups have told; who waits for more of it gives up."""
        async with self.changed:
            self.forming = generation
            self.values.clear()
            self.changed.notify_all()

    @concurrent_endpoint
    async def set(self, generation: int, key: str, value: bytes) -> None:
        """Keep a value, if it is of the present generation."""
        async with self.changed:
            if generation == self.forming:
                self.values[key] = value
                self.changed.notify_all()

    @concurrent_endpoint
    async def add(self, generation: int, key: str, amount: int) -> int:
        """Add to a number, which begins with 0; gives the sum."""
        async with self.changed:
            total = int(self.values.get(key, b"0")) + amount
            if generation == self.forming:
                self.values[key] = str(total).encode()
                self.changed.notify_all()
            return total

    @concurrent_endpoint
    async def has(self, keys: list[str]) -> bool:
        """Tell whether all of these have been set."""
        return all(key in self.values for key in keys)

    @concurrent_endpoint
    async def get(self, generation: int, keys: list[str]) -> list[bytes]:
        """Give values, once all of them have been set."""
        async with self.changed:
            while not all(key in self.values for key in keys):
                if generation != self.forming:
                    raise AbandonedError(f"generation {generation} was given up")
                await self.changed.wait()
            return [self.values[key] for key in keys]


class Store(dist.Store):
    """A store of torch's whose values an actor holds, for the group of one generation."""

    def __init__(self, values: Any, generation: int) -> None:
        super().__init__()
        self._values = values
        self._generation = generation

    def set(self, key: str, value: str | bytes) -> None:
        """Keep a value."""
        data = value.encode() if isinstance(value, str) else bytes(value)
        self._values.set.call_one(self._generation, key, data).get(WAIT.total_seconds())

    def get(self, key: str) -> bytes:
        """Give a value, once it has been set."""
        return self.multi_get([key])[0]

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Give values, once all of them have been set."""
        found = self._values.get.call_one(self._generation, keys).get(WAIT.total_seconds())
        return list(found)

    def wait(self, keys: list[str], timeout: timedelta = WAIT) -> None:
        """Wait until all of these have been set."""
        self._values.get.call_one(self._generation, keys).get(timeout.total_seconds())

    def check(self, keys: list[str]) -> bool:
        """Tell whether all of these have been set."""
        return bool(self._values.has.call_one(keys).get(WAIT.total_seconds()))

    def add(self, key: str, amount: int) -> int:
        """Add to a number; gives the sum."""
        return int(
            self._values.add.call_one(self._generation, key, amount).get(WAIT.total_seconds())
        )


def let_go(held: list[Any]) -> None:
    """End a group and then its store, in a thread: that waits for what hangs in the group."""
    threading.Thread(target=held.clear, daemon=True).start()


class Trainer(Actor):
    """One rank: a small regression, whose data depend on the rank and the step alone."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = self.new_model().to(DEVICE)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        for parameter in self.model.parameters():  # there from the first step on, to be shared
            self.optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        self.step = 0
        self.group: Any = None
        self.store: Any = None  # the group has no hold of what is Python's in it
        self.generation = 0
        self.abandoned = False

    def new_model(self) -> torch.nn.Module:
        """Give the model before its first step."""
        layers = (torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
        return torch.nn.Sequential(*layers)

    def batch(self, rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Give the samples of a rank in a step, and what the model should make of them."""
        drawn = torch.Generator().manual_seed(1_000_003 * step + rank)
        inputs = torch.randn(SAMPLES, 8, generator=drawn)
        return inputs, torch.sin(inputs.sum(1, keepdim=True))

    @endpoint
    async def pid(self) -> int:
        """Give the process, for those who want to end it."""
        return os.getpid()

    @concurrent_endpoint
    async def abandon(self) -> None:
        """Wait for the collectives of the present group no longer."""
        self.abandoned = True

    @endpoint
    async def done(self) -> int:
        """Give the number of steps that this rank has done."""
        return self.step

    @concurrent_endpoint  # so that the next one is not held by one that waits for a lost rank
    async def join(self, values: Any, generation: int) -> None:
        """Be one of the group of this generation."""
        old = [self.group, self.store]
        self.group = self.store = None
        self.generation = generation
        place = current_rank()

        store = Store(values, generation)

        def meet() -> Any:
            prefixed = dist.PrefixStore(f"generation-{generation}", store)
            return group_of(prefixed, place.rank, place.extent.nelements)

        self.abandoned = False
        try:
            group = await asyncio.to_thread(meet)
        finally:
            let_go(old)
        if generation != self.generation:
            let_go([group, store])
            raise AbandonedError(f"generation {generation} was given up")
        self.group, self.store = group, store

    @concurrent_endpoint  # so that `abandon` is heard meanwhile
    async def share(self, ahead: int, step: int) -> None:
        """Have all ranks begin this step with the weights and optimizer of the one that is ahead.

        They go through the group, whose connections are there: as the results of a call they would
        be pickled and unpickled twice, which takes longer than all else that a recovery needs.
        """
        held = [parameter.detach() for parameter in self.model.parameters()]
        held += [self.optimizer.state[each]["momentum_buffer"] for each in self.model.parameters()]
        whole = torch.cat([each.flatten() for each in held])
        options = dist.BroadcastOptions()
        options.rootRank = ahead
        await self._finished(self.group.broadcast([whole], options))
        if self.step < step:
            for each, part in zip(held, whole.split([one.numel() for one in held]), strict=True):
                each.copy_(part.view_as(each))
            self.step = step

    @concurrent_endpoint  # so that `abandon` is heard meanwhile
    async def train(self, step: int) -> float:
        """Do one step together with the others; gives the mean loss."""
        place = current_rank()
        inputs, wanted = self.batch(place.rank, step)
        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.model(inputs.to(DEVICE)), wanted.to(DEVICE))
        loss.backward()
        parameters = list(self.model.parameters())
        sizes = [parameter.numel() for parameter in parameters]
        parts = [parameter.grad.flatten() for parameter in parameters]
        mean = torch.cat([*parts, loss.detach().reshape(1)])
        await self._finished(self.group.allreduce([mean]))
        mean /= place.extent.nelements
        for parameter, part in zip(parameters, mean[:-1].split(sizes), strict=True):
            parameter.grad.copy_(part.view_as(parameter))
        self.optimizer.step()
        self.step = step + 1
        return float(mean[-1])

    async def _finished(self, work: Any) -> None:
        """Look after a collective until it is done, or its group is given up."""
        pause = 0.0
        while not work.is_completed():
            if self.abandoned:
                raise AbandonedError
            await asyncio.sleep(pause)
            pause = min(pause + 0.0001, 0.001)
        work.wait()


def processes(ranks: int, *, spares: int = 1) -> Any:
    """Start the processes of all ranks on this host, and some that stand by."""
    # Once, before processes fork. Optimizers import the second, which takes longer than torch.
    configure(preload_modules="torch.distributed,torch._dynamo")
    return this_host().spawn_procs({"ranks": ranks}, spares=spares)


class Training:
    """The program's side: it holds the store, forms groups, and replaces what is lost."""

    def __init__(self, procs: Any, *, trainer: type[Trainer] = Trainer) -> None:
        """Train on a mesh of processes, or on a `ProcessMesh`, whose lost nodes are replaced."""
        monarch.actor.unhandled_fault_hook = bool  # a loss ends no program: it is dealt with here
        self.procs = procs
        self.replace = getattr(procs, "replace_node", procs.respawn)
        self.trainers = procs.flatten("ranks").spawn("trainer", trainer)
        self.values = this_proc().spawn("values", Values)
        self.generation = 0
        self.form()
        gc.freeze()  # a look through what torch has brought can take half a second

    def form(self) -> int:
        """Form a group of all ranks, with the weights of the one that is ahead; gives its step."""
        self.generation += 1
        done = list(self.trainers.done.call().get().values())
        ahead = max(range(len(done)), key=done.__getitem__)
        self.values.begin.call_one(self.generation).get()
        self.trainers.join.call(self.values, self.generation).get()
        if min(done) < done[ahead]:
            self.trainers.share.call(ahead, done[ahead]).get()
        return done[ahead]

    def recover(self) -> int:
        """Replace lost ranks and form a new group; gives the step to go on with."""
        while True:
            try:
                abandoned = self.trainers.abandon.options(on_error="collect").call()
                self.replace().get()  # while the others end what they compute
                # Who is lost has an error here, and only then: the others give up and answer.
                abandoned.get()
                self.replace().get()
                return self.form()
            except (ActorCrashError, ActorError):
                continue  # one more was lost meanwhile

    def run(self, steps: int, step: int = 0) -> Iterator[tuple[int, float]]:
        """Train from a step on; gives each step done and its loss."""
        while step < steps:
            try:
                losses = self.trainers.train.call(step).get()
            except (ActorCrashError, ActorError):
                step = self.recover()
                continue
            yield step, next(iter(losses.values()))
            step += 1


def main() -> None:
    """Train, with losses where they are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--kill-at", type=int, action="append", default=[], metavar="STEP")
    parser.add_argument("--stop-at", type=int, action="append", default=[], metavar="STEP")
    asked = parser.parse_args()
    training = Training(processes(asked.ranks))
    last = time.perf_counter()
    generation = training.generation
    for step, loss in training.run(asked.steps):
        now = time.perf_counter()
        if training.generation != generation:
            generation = training.generation
            print(f"step {step}: generation {generation}, {now - last:.3f} s after the step before")
        if step % 10 == 9:
            print(f"step {step}: loss {loss:.6f}")
        victim = training.trainers.slice(ranks=(step * 7 + 1) % asked.ranks)
        if step in asked.kill_at:
            os.kill(victim.pid.call_one().get(), signal.SIGKILL)
        if step in asked.stop_at:
            os.kill(victim.pid.call_one().get(), signal.SIGSTOP)
        last = time.perf_counter()
    training.procs.stop().get()


if __name__ == "__main__":
    main()
