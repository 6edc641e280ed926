"""The training that is the same for all: model, data, and what the ranks tell of themselves."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path

import torch

FEATURES = 256
WIDTH = 640
DEPTH = 4
SAMPLES = 256
LEARNING_RATE = 0.05
MOMENTUM = 0.9


def model() -> torch.nn.Module:
    """The model before its first step, the same in every process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = [FEATURES, *[WIDTH] * DEPTH]
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1))


def optimizer(trained: torch.nn.Module) -> torch.optim.Optimizer:
    """Its optimizer."""
    return torch.optim.SGD(trained.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The samples of a rank in a step, and what the model should make of them."""
    drawn = torch.Generator().manual_seed(1_000_003 * step + rank)
    inputs = torch.randn(SAMPLES, FEATURES, generator=drawn)
    return inputs, torch.sin(inputs.sum(1, keepdim=True) / 16)


def loss(trained: torch.nn.Module, rank: int, step: int) -> torch.Tensor:
    """The loss of a rank in a step, gradients and all."""
    inputs, wanted = batch(rank, step)
    found = torch.nn.functional.mse_loss(trained(inputs), wanted)
    found.backward()
    return found.detach()


def gradients(trained: torch.nn.Module) -> torch.Tensor:
    """All gradients in one row, so that one collective averages them."""
    return torch.cat(
        [each.grad.flatten() for each in trained.parameters() if each.grad is not None]
    )


def use(trained: torch.nn.Module, mean: torch.Tensor) -> None:
    """Take averaged gradients over."""
    parameters = list(trained.parameters())
    parts = mean.split([each.numel() for each in parameters])
    for each, part in zip(parameters, parts, strict=True):
        each.grad = part.view_as(each).clone()


class Told:
    """What one process tells: its pid, and which step its weights have reached when."""

    def __init__(self, folder: str | os.PathLike[str], name: str) -> None:
        self._file = os.open(Path(folder, f"steps-{name}"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def step(self, done: int, ranks: int) -> None:
        """Steps that the weights hold now, and how many ranks took part in the last one."""
        os.write(self._file, f"{time.monotonic()} {done} {ranks}\n".encode())


def tell_pid(folder: str | os.PathLike[str], rank: int) -> None:
    """Say which process is this rank now."""
    made = Path(folder, f"pid-{rank}.{os.getpid()}")
    made.write_text(str(os.getpid()), encoding="ascii")
    made.replace(Path(folder, f"pid-{rank}"))
