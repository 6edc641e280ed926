"""Waiting for the hosts of a SkyPilotJob: what is there, what is missing and why."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from monarch._job.progress import Waiting
from monarch._job.sky.client import NotAnsweredError
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from monarch._job.sky.client import Client
    from monarch.errors import LinkError

_FIRST, _LONGEST, _GROWTH = 0.5, 10.0, 1.4  # seconds between two looks
_LINES = 15  # of a program's output that an error shows
_FAILED = frozenset({"FAILED", "FAILED_SETUP", "FAILED_DRIVER", "CANCELLED", "SUCCEEDED"})
_HINT = " (idle_minutes_to_autostop=None does without)"
_DOING = {
    "INIT": "its program being started",
    "PENDING": "its program waiting for resources",
    "SETTING_UP": "running setup_commands",
}


@dataclass(frozen=True, slots=True)
class Host:
    """A host as it was asked for.

    Attributes:
        cluster: SkyPilot's name of its cluster.
        index: which node of that it is.
        request: SkyPilot's id of the launch.
        generation: 0, and one more for each host that took this one's place.
        replaces: the id of the host whose place it took, empty for the first.

    """

    cluster: str
    index: int
    request: str
    generation: int = 0
    replaces: str = ""


def wait(
    sky: Client, hosts: Mapping[int, Host], seconds: float | None, title: str
) -> dict[int, str]:
    """The IP addresses of the hosts, by rank; waits until the programs of all run.

    Raises:
        JobError: a host cannot be had or has ended, or they are not there after `seconds`.

    """
    until = None if seconds is None else time.monotonic() + seconds
    pause, found = _FIRST, dict[int, str]()
    waits = dict.fromkeys(hosts, "asked for")
    with Waiting() as progress:
        while True:
            text = f"{title}: {len(found)} of {len(hosts)} hosts ready"
            try:
                waits = _step(sky, hosts, found)
            except NotAnsweredError as error:
                text += f"; {error}"
            if len(found) == len(hosts):
                return found
            for what, count in Counter(waits.values()).items():
                text += f", {count} {what}"
            progress.say(text)
            if until is not None and time.monotonic() > until:
                missing = ", ".join(hosts[rank].cluster for rank in hosts if rank not in found)
                raise JobError(
                    f"not all hosts came in {seconds:g} s (job_start_timeout): waited for {text}; "
                    f"missing: {missing}"
                )
            time.sleep(pause)
            pause = min(pause * _GROWTH, _LONGEST)


def reach(sky: Client, hosts: Mapping[int, Host], refs: Mapping[int, Any], title: str) -> None:
    """Wait until there are links to the hosts.

    Raises:
        JobError: the program of one has ended.
        LinkError: there is no link to one as long as the setting mesh_attach_config_timeout says.

    """
    ended: SimpleQueue[tuple[int, LinkError | None]] = SimpleQueue()

    def note(rank: int, error: LinkError | None) -> None:
        ended.put((rank, error))

    for rank, ref in refs.items():
        ref.then(partial(note, rank))
    left, looked = dict(hosts), time.monotonic()
    with Waiting() as progress:
        while left:
            progress.say(f"{title}: {len(hosts) - len(left)} of {len(hosts)} hosts reached")
            error = None
            with contextlib.suppress(Empty):
                rank, error = ended.get(timeout=_FIRST)
                if error is None:
                    del left[rank]
            if error is not None or time.monotonic() - looked > _LONGEST / 2:
                _check(sky, left.values())
                looked = time.monotonic()
            if error is not None:
                raise error


def alive(sky: Client, hosts: Mapping[int, Host]) -> bool:
    """Whether all clusters are up, or on their way, and the programs of their hosts run."""
    names = sorted({host.cluster for host in hosts.values()})
    clusters = sky.ask("clusters", names=names)
    if set(clusters) != set(names) or any(one["status"] == "STOPPED" for one in clusters.values()):
        return False
    up = [name for name in names if clusters[name]["status"] == "UP"]
    return not _FAILED & set(sky.ask("programs", names=up).values())


def _check(sky: Client, hosts: Iterable[Host]) -> None:
    """See that the programs of these hosts have not ended."""
    with contextlib.suppress(NotAnsweredError):
        names = sorted({host.cluster for host in hosts})
        for cluster, state in sky.ask("programs", names=names).items():
            if state in _FAILED:
                raise _obituary(sky, cluster, state)


def _obituary(sky: Client, cluster: str, state: str) -> JobError:
    said = sky.ask("tail", cluster=cluster, lines=_LINES).strip()
    words = f"; its last output:\n{said}" if said else ""
    return JobError(f"the program of {cluster} has ended: {state}{words}")


def _step(sky: Client, hosts: Mapping[int, Host], found: dict[int, str]) -> dict[int, str]:
    """Look once: hosts whose programs run are added to `found`; what the others wait for."""
    missing = {rank: host for rank, host in hosts.items() if rank not in found}
    requests = sky.ask("requests", ids=sorted({host.request for host in missing.values()}))
    waits: dict[int, str] = {}
    launched: dict[int, Host] = {}
    for rank, host in missing.items():
        told = requests.get(host.request)
        if told is None or told["state"] == "SUCCEEDED":  # SkyPilot forgets requests in time
            launched[rank] = host
        elif told["error"]:
            hint = _HINT if "autostop" in told["error"].lower() else ""
            raise JobError(f"SkyPilot cannot launch {host.cluster}: {told['error']}{hint}")
        else:
            said = " ".join(told["said"].split())
            waits[rank] = f"{told['state'].lower()}{f' ({said[:120]})' if said else ''}"
    names = sorted({host.cluster for host in launched.values()})
    if not names:
        return waits
    clusters = sky.ask("clusters", names=names)
    for name in names:
        if name not in clusters:
            raise JobError(f"cluster {name} is not there any more: it was ended by somebody else")
    programs = sky.ask("programs", names=names)
    for rank, host in launched.items():
        state = programs.get(host.cluster, "")
        if state in _FAILED:
            raise _obituary(sky, host.cluster, state)
        ips = clusters[host.cluster]["ips"]
        if state == "RUNNING" and host.index < len(ips):
            found[rank] = ips[host.index][0]
        else:
            waits[rank] = _DOING.get(state) or clusters[host.cluster]["why"] or "starting"
    return waits
