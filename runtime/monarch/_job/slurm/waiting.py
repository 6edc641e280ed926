"""Waiting for the hosts of a SLURM job: what is there, what is missing and why, what is lost."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from monarch._job.hostlist import expand
from monarch._job.progress import Waiting
from monarch._job.slurm import commands
from monarch._job.slurm.records import CLEARING
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from monarch._job.slurm.folder import Arrival, JobFolder, Place
    from monarch._job.slurm.records import Record

_FILES = 0.1  # seconds between two looks into the folder
_FIRST, _LONGEST, _GROWTH = 0.3, 5.0, 1.4  # seconds between two questions to SLURM


def wait(
    folder: JobFolder, places: Mapping[int, Place], seconds: float | None
) -> dict[int, Arrival]:
    """Where the hosts listen, by rank; waits until all do.

    Raises:
        JobError: a host has ended or cannot be had, SLURM's answer cannot be read, or they are
            not there after `seconds`.

    """
    began = time.monotonic()
    pause, asked = _FIRST, 0.0
    records: dict[str, Record] = {}
    missing: Counter[int] = Counter()
    trouble = ""
    with Waiting() as progress:
        while True:
            arrivals = folder.arrivals(places)
            now = time.monotonic()
            if now - asked >= pause or (not asked and len(arrivals) == len(places)):
                try:
                    records, trouble = commands.look(_names(places)), ""
                except commands.NotAnsweredError as error:
                    trouble = str(error)
                else:
                    _check(folder, places, records, missing)
                pause, asked = min(pause * _GROWTH, _LONGEST), time.monotonic()
            ready = {r for r in arrivals if _ready(arrivals[r], records.get(places[r].job))}
            progress.say(_text(places, records, ready, trouble))
            if len(ready) == len(places):
                return arrivals
            if seconds is not None and now - began > seconds:
                raise JobError(
                    f"not all hosts came in {seconds:g} s (job_start_timeout): waited for "
                    f"{_text(places, records, ready, trouble)}"
                )
            time.sleep(_FILES)


def lost(folder: JobFolder, places: Mapping[int, Place]) -> dict[int, str]:
    """The hosts that have ended, each with how; asks SLURM twice before one is called gone.

    Raises:
        JobError: SLURM does not answer.

    """
    found: dict[int, str] = {}
    for _ in range(2):
        found = _lost(folder, places, commands.look(_names(places)))
        if not found:
            return {}
        time.sleep(_FIRST)
    return found


def rank_of(node_id: str, folder: JobFolder, places: Mapping[int, Place]) -> int:
    """The rank of the host with this id, or of the one that was to take its place.

    Raises:
        JobError: the job has no such host.

    """
    arrivals = folder.arrivals(places)
    for rank, arrival in arrivals.items():
        if arrival.name == node_id:
            return rank
    for rank, place in places.items():
        if place.replaces == node_id:
            return rank
    known = ", ".join(arrival.name for arrival in arrivals.values()) or "none yet"
    raise JobError(f"the job has no host {node_id!r} to replace; its hosts are {known}")


def _names(places: Mapping[int, Place]) -> set[str]:
    return {place.job for place in places.values()}


def _ready(arrival: Arrival, record: Record | None) -> bool:
    """Whether a host that has arrived is the one that SLURM means now."""
    return record is not None and record.running and arrival.restart >= record.restarts


def _check(
    folder: JobFolder,
    places: Mapping[int, Place],
    records: Mapping[str, Record],
    missing: Counter[int],
) -> None:
    """Refuse to wait for what has ended or cannot come.

    A job that SLURM does not know is gone after two such answers.
    """
    gone = _lost(folder, places, records)
    for rank in gone:
        if places[rank].job not in records:
            missing[rank] += 1
    for rank in set(missing) - set(gone):
        del missing[rank]
    final = [rank for rank in gone if _ended(records.get(places[rank].job)) or missing[rank] > 1]
    if final:
        ran = places[final[0]].job in records and "CANCELLED" not in gone[final[0]]
        raise JobError(_obituary(folder, final, gone[final[0]], ran=ran))
    for place in places.values():
        record = records.get(place.job)
        if record is not None and record.hopeless:
            raise JobError(
                f"SLURM job {place.job} would wait for ever: {record.reason}; it asks for more "
                "than its partition, account or quality of service may have"
            )


def _ended(record: Record | None) -> bool:
    """Whether it certainly has; what is being cleared may be about to start again elsewhere."""
    return record is not None and record.state != CLEARING


def _lost(
    folder: JobFolder, places: Mapping[int, Place], records: Mapping[str, Record]
) -> dict[int, str]:
    found = {}
    arrivals: dict[int, Arrival] | None = None
    for rank, place in places.items():
        record = records.get(place.job)
        if record is None:
            found[rank] = (
                f"SLURM job {place.job} is not known to SLURM any more: it was cancelled before it "
                "started, or ended long ago"
            )
        elif not record.alive:
            how = record.state if record.state != CLEARING else "ended"
            why = ", ".join(part for part in (record.ended, record.reason) if part)
            found[rank] = f"SLURM job {place.job}: {how}{f' ({why})' if why else ''}"
        elif record.running:
            arrivals = folder.arrivals(places) if arrivals is None else arrivals
            arrival = arrivals.get(rank)
            current = arrival is not None and arrival.restart >= record.restarts
            if arrival and current and arrival.node not in _expanded(place, record):
                found[rank] = f"SLURM job {place.job} goes on without node {arrival.node}"
    return found


def _expanded(place: Place, record: Record) -> list[str]:
    try:
        return expand(record.nodes)
    except ValueError as error:
        raise JobError(
            f"SLURM job {place.job} has a host list that cannot be read: {error}"
        ) from None


def _obituary(folder: JobFolder, ranks: list[int], how: str, *, ran: bool) -> str:
    text = f"host {ranks[0]} of the job has ended"
    if len(ranks) > 1:
        text = f"{len(ranks)} of the job's hosts have ended, host {ranks[0]} first"
    tail = folder.tail([*ranks])
    if tail:
        return f"{text}: {how}; its last output:\n{tail}"
    hint = f"; it printed nothing to {folder.path}, which the nodes must see as well"
    return f"{text}: {how}{hint if ran else ''}"


def _text(
    places: Mapping[int, Place], records: Mapping[str, Record], ready: set[int], trouble: str
) -> str:
    """What is waited for and why, in one line."""
    jobs = sorted({place.job.partition("_")[0] for place in places.values()}, key=int)
    text = f"SLURM job {', '.join(jobs)}: {len(ready)} of {len(places)} hosts ready"
    if trouble:
        return f"{text}; {trouble}"
    why: Counter[str] = Counter()
    for rank, place in places.items():
        record = records.get(place.job)
        if rank in ready:
            continue
        if record is None:
            why["submitted"] += 1
        elif record.running:
            why["starting"] += 1
        else:
            reason = f" ({record.reason})" if record.reason else ""
            why[f"{record.state.lower()}{reason}"] += 1
    return ", ".join([text, *(f"{count} {what}" for what, count in why.items())])
