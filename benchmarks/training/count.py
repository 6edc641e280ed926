"""How many steps of a run were useful: those whose update is in the weights at the end of it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_NEXT = 3  # steps after a fault, between two of which its pause is


@dataclass(frozen=True, slots=True)
class Line:
    """At `time` (monotonic seconds) the weights held `step` steps; `ranks` did the last of them."""

    time: float
    step: int
    ranks: int


def read(folder: Path) -> list[Line]:
    """What all ranks of a run have told, in the order of time."""
    found = []
    for path in folder.glob("steps-*"):
        whole = path.read_text(encoding="ascii").rpartition("\n")[
            0
        ]  # a last line may be half there
        for line in whole.splitlines():
            time, step, ranks = line.split()
            found.append(Line(float(time), int(step), int(ranks)))
    return sorted(found, key=lambda line: line.time)


@dataclass(frozen=True, slots=True)
class Useful:
    """Useful steps of a window.

    Attributes:
        steps: how many.
        full: the same, where a step that only half of the ranks took part in counts half.
        lost: how many were done and are not in the weights at the end.

    """

    steps: int
    full: float
    lost: int


def useful(lines: list[Line], start: float, end: float, ranks: int) -> Useful:
    """Count those of a window.

    `lines` have to go on after `end`: what they say first there tells whether the weights at the
    end lasted, or a restart that was under way went back behind them.

    Raises:
        ValueError: nothing was told before the window, in it, or after it.

    """
    before = [line for line in lines if line.time <= start]
    within = [line for line in lines if start < line.time <= end]
    after = [line for line in lines if line.time > end]
    if not before or not within or not after:
        raise ValueError(
            f"{len(before)} lines before the window, {len(within)} in it, {len(after)} after it; "
            "each has to have one"
        )
    first = at = before[-1].step
    lost = 0
    took_part: dict[int, int] = {}  # by step, the last time that it was done
    for line in [*within, after[0]]:
        if line.step < at:  # it went back, and has done this step again
            lost += at - line.step + 1
            at = line.step - 1
        if line is after[0]:
            break
        took_part |= dict.fromkeys(range(at + 1, line.step), line.ranks)  # of which nobody told
        took_part[line.step] = line.ranks
        at = line.step
    counted = [took_part[step] for step in range(first + 1, at + 1)]
    return Useful(len(counted), sum(counted) / ranks, lost)


def costs(lines: list[Line], faults: list[float]) -> list[float]:
    """Seconds that each fault cost: the pause until there was a step more, less one step's time.

    That of a step is the median of the run, so a fault's cost hardly depends on what else the
    machine does in other parts of the run. Faults that nothing came after are left out.
    """
    gained = list(_gains(lines))
    usual = median(b.time - a.time for a, b in pairwise(gained))
    found = []
    for at in faults:
        # The step that was all but done may still come.
        pauses = [b.time - max(a.time, at) for a, b in pairwise(gained) if b.time > at]
        if pauses:
            found.append(max(*pauses[:_NEXT], usual) - usual)
    return found


def shares(lines: list[Line], faults: list[float], every: float) -> list[float]:
    """What each fault left of the steps of its period of `every` seconds, by the same minute alone.

    A period begins with its fault. Its last third, and the third before it, in which nothing
    happened, say how many steps there would have been in the two thirds between them; so what else
    the machine does, if it does it for longer than a period, is in both. Periods that the lines do
    not cover are left out.
    """
    times = [line.time for line in lines]

    def held(at: float) -> float:
        """The steps that the weights held then; between two lines, in proportion."""
        place = bisect_right(times, at)
        before, after = lines[place - 1], lines[place]
        if after.step <= before.step:
            return before.step
        done = (at - before.time) / (after.time - before.time)
        return before.step + done * (after.step - before.step)

    third = every / 3
    found = []
    for at in faults:
        if not lines or at - third < times[0] or at + every >= times[-1]:
            continue
        spared = held(at) - held(at - third) + held(at + every) - held(at + 2 * third)
        if spared > 0:
            found.append((2 * (held(at + 2 * third) - held(at)) / spared + 1) / 3)
    return found


def _gains(lines: list[Line]) -> Iterator[Line]:
    """The lines at which the weights held more steps than ever before."""
    most = -1
    for line in lines:
        if line.step > most:
            most = line.step
            yield line
