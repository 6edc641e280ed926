"""Ending SLURM jobs, and seeing that nothing of them is left."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from monarch._job.slurm import commands
from monarch._job.slurm.records import CLEARING
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from monarch._job.slurm.folder import Place

_ORDERLY = 30.0  # seconds until what does not end is killed
_KILLED = 30.0  # seconds until a killed job that SLURM still has is an error
_FIRST, _LONGEST, _GROWTH = 0.1, 2.0, 1.5


def cancel(jobs: Sequence[str]) -> None:
    """Ask SLURM to end jobs, without waiting; that it cannot be asked is not told."""
    with contextlib.suppress(JobError):
        commands.cancel(jobs)


def shared(place: Place, places: Mapping[int, Place]) -> bool:
    """Whether other hosts come from the SLURM job of this one."""
    return any(other.job == place.job for other in places.values() if other is not place)


def end(jobs: Sequence[str]) -> None:
    """End jobs, and wait until SLURM has their hosts back.

    What does not end in time is killed.

    Raises:
        JobError: SLURM cannot be asked, or still has one of them after that; it is named.

    """
    names = sorted(set(jobs))
    if not names:
        return
    left: list[str] = names
    trouble: JobError | None = None
    for seconds, options in ((_ORDERLY, ()), (_KILLED, ("--signal=KILL", "--full"))):
        try:
            commands.cancel(sorted({name.partition("_")[0] for name in left}), *options)
            left, trouble = _wait(left, seconds), None
        except JobError as error:
            trouble = error
        if not left:
            return
    why = f" ({trouble})" if trouble is not None else ""
    raise JobError(
        f"SLURM still has {', '.join(left)} of this job{why}; their programs end by themselves, as "
        f"the job's folder is gone; free the nodes with: scancel {' '.join(left)}"
    )


def _wait(names: Sequence[str], seconds: float) -> list[str]:
    """Those that still have hosts, or may get some, after this time."""
    until = time.monotonic() + seconds
    pause = _FIRST
    while True:
        records = commands.look(names)
        left = [
            name
            for name in names
            if name in records and (records[name].alive or records[name].state == CLEARING)
        ]
        if not left or time.monotonic() > until:
            return left
        time.sleep(pause)
        pause = min(pause * _GROWTH, _LONGEST)
