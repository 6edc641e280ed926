"""Waiting for pods: which are ready, what the others wait for, and what will never be."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from monarch._job.kube.api import NotAnsweredError
from monarch._job.progress import Waiting
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FIRST, _LONGEST, _GROWTH = 1.0, 10.0, 1.3  # seconds between two looks where nothing changes
_LONGEST_TEXT = 500  # characters of what the API says
_SHOWN = 400  # characters of what a program said, its last ones
# Why a container waits that no time will change.
_NEVER = {
    "ImagePullBackOff",  # tried, and failed
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
}


@dataclass(frozen=True, slots=True)
class Pod:
    """What matters of a pod: `ready`, `lost` (how it ended) or `never` (why it will not start).

    `waits` says what it waits for while it is none of them.
    """

    name: str
    ip: str = ""
    ready: bool = False
    waits: str = ""
    lost: str = ""
    never: str = ""


def read(manifest: Mapping[str, Any]) -> Pod:
    """A pod as the API describes it."""
    name = str(manifest["metadata"]["name"])
    status = manifest.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    phase = status.get("phase") or "Pending"
    if manifest["metadata"].get("deletionTimestamp"):
        return Pod(name, lost="it is being removed")
    if phase in {"Failed", "Succeeded"}:
        return Pod(name, lost=_ended(status, phase))
    for one in _containers(status):
        waiting = (one.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason") or ""
        text = _joined(reason, waiting.get("message"))
        if reason in _NEVER:
            return Pod(name, never=text)
        if reason and reason != "ContainerCreating":
            return Pod(name, waits=text)
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return Pod(name, waits=_joined(scheduled.get("reason"), scheduled.get("message")))
    ip = str(status.get("podIP") or "")
    if phase == "Running" and (conditions.get("Ready") or {}).get("status") == "True" and ip:
        return Pod(name, ip, ready=True)
    return Pod(name, waits="starting" if phase == "Running" else "container being made")


def wait(
    look: Callable[[], dict[tuple[str, int], Pod]],
    pause_for: Callable[[float], None],
    wanted: Mapping[tuple[str, int], str],
    seconds: float | None,
) -> dict[tuple[str, int], Pod]:
    """The pods by mesh and rank, once all are ready.

    `pause_for` waits until something may have changed, at most so many seconds. `wanted` has the
    names of pods that were made, so that one that is twice not there was removed; empty else.

    Raises:
        JobError: one has ended, can never start, or they are not ready after `seconds`.

    """
    until = None if seconds is None else time.monotonic() + seconds
    pause = _FIRST
    absent: Counter[tuple[str, int]] = Counter()
    with Waiting() as progress:
        while True:
            trouble, found = "", {}
            try:
                found = look()
            except NotAnsweredError as error:
                trouble = str(error)
            else:
                _check(found)
                absent = Counter({key: absent[key] + 1 for key in wanted if key not in found})
                for key, times in absent.items():
                    if wanted[key] and times > 1:
                        raise JobError(f"pod {wanted[key]} has ended: it was removed")
                if not absent and all(found[key].ready for key in wanted):
                    return found
            text = trouble or _text(found, wanted)
            progress.say(text)
            left = pause if until is None else until - time.monotonic()
            if left < 0:
                missing = ", ".join(_missing(found, wanted))
                raise JobError(f"not all hosts came in {seconds:g} s: {text}; missing: {missing}")
            pause_for(min(pause, left))
            pause = min(pause * _GROWTH, _LONGEST)


def _check(found: Mapping[tuple[str, int], Pod]) -> None:
    for pod in found.values():
        if pod.lost:
            raise JobError(f"pod {pod.name} has ended: {pod.lost}")
        if pod.never:
            raise JobError(f"pod {pod.name} cannot start: {pod.never}")


def _missing(
    found: Mapping[tuple[str, int], Pod], wanted: Mapping[tuple[str, int], str]
) -> list[str]:
    return [
        found[key].name if key in found else f"{key[0]} {key[1]}"
        for key in sorted(wanted)
        if key not in found or not found[key].ready
    ]


def _text(found: Mapping[tuple[str, int], Pod], wanted: Mapping[tuple[str, int], str]) -> str:
    """What is waited for and why, in one line."""
    why: Counter[str] = Counter()
    for key in wanted:
        pod = found.get(key)
        if pod is None or not pod.ready:
            why[pod.waits if pod is not None else "not there yet"] += 1
    ready = len(wanted) - sum(why.values())
    parts = [f"{count} {what}" for what, count in why.items()]
    return ", ".join([f"{ready} of {len(wanted)} pods ready", *parts])


def _containers(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _ended(status: Mapping[str, Any], phase: str) -> str:
    """How a pod ended: of itself (Evicted), or by a container's exit (OOMKilled)."""
    if status.get("reason"):
        return _joined(status["reason"], status.get("message"))
    for one in _containers(status):
        ended = (one.get("state") or {}).get("terminated") or {}
        if ended:
            code = f"exit code {ended.get('exitCode', '?')}"
            reason = str(ended.get("reason") or phase)
            # Where it wrote none itself, the end of its log: what it failed with comes last.
            text = str(ended.get("message") or "").strip()
            return _joined(f"{reason}, {code}", text[-_SHOWN:])
    return str(phase)


def _joined(reason: Any, message: Any) -> str:
    return ": ".join(str(part).strip() for part in (reason, message) if part)[:_LONGEST_TEXT]
