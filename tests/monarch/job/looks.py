"""Looks at jobs that their tests have in common."""

from __future__ import annotations

import time

import pytest

from monarch.errors import JobError


def fails(made, match: str, seconds: float = 20) -> None:
    """See that a job fails within this time, and is over."""
    began = time.monotonic()
    with pytest.raises(JobError, match=match):
        made.state(cached_path=None)
    assert time.monotonic() - began < seconds
    assert not made.active


def ids(mesh) -> list[str]:
    """The ids of a mesh's hosts."""
    return [ref.node for ref in mesh._refs()]


def pids(job) -> list[int]:
    """The programs that are the hosts of a `SlurmJob`."""
    folder = job._there()
    return [arrival.pid for arrival in folder.arrivals(folder.planned()).values()]
