"""The folder of a job that submit host and nodes share: how hosts and client find each other.

It is its owner's alone (0700) and has

- `secret`: the cluster's secret, for the hosts (0600), or `secret.munge`, a credential of munge's
  that holds it;
- `plan.json`: for each host of the job the SLURM job it comes from, and its *generation*, which
  counts up when another takes its place;
- `host-RANK-GENERATION-RESTART.json`: where a host listens, written by itself;
- `lease`: touched by the client every few seconds; not there for a job that was stored;
- `host-RANK.log`: what a host's program printed.

A host ends itself when the plan no longer has it, when SLURM has started it elsewhere, or when the
lease is not renewed. So a node that was given up ends its part even where SLURM cannot reach it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monarch._job import fields, stored
from monarch._job.slurm import munge
from monarch._link import secret
from monarch.errors import JobError, JobStateError, SecretError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from monarch._link.secret import Secret

RENEWED = 10.0  # seconds between two touches of the lease
EXPIRES = 120.0  # seconds without one, after which hosts end
_SCHEMA = 1
_ADVICE = "it was cut or changed: put it right, or end the job by its state file, or with scancel"
_ARRIVAL = re.compile(r"host-(\d+)-(\d+)-(\d+)\.json")


@dataclass(frozen=True, slots=True)
class Place:
    """A host as it is planned.

    Attributes:
        job: the SLURM job that it comes from, as `12` or `12_3`.
        generation: 0, and one more for each host that took this one's place.
        replaces: the id of the host whose place it took, empty for the first.

    """

    job: str
    generation: int = 0
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A host that has said where it listens.

    `name` is its id in the job, and `restart` how often SLURM had started it again.
    """

    address: str
    name: str
    node: str
    pid: int
    restart: int = 0


class JobFolder:
    """The folder of a job, as its client and its hosts use it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def secret(self) -> Path:
        """Where the secret is, unless it is sealed."""
        return self.path / "secret"

    @property
    def sealed(self) -> Path:
        """Where the secret is as a credential of munge's."""
        return self.path / "secret.munge"

    def make(self, *, sealed: bool = False) -> None:
        """Make the folder, with the secret of this process and a lease.

        Raises:
            JobError: it cannot be made.

        """
        try:
            self.path.mkdir(parents=True, mode=0o700)
            if sealed:
                stored.save(self.sealed, munge.seal(secret.current().give()))
            else:
                secret.current().write(str(self.secret))
            self.renew(new=True)
        except SecretError as error:
            self.path.rmdir()
            raise JobError(str(error)) from None
        except OSError as error:
            raise JobError(
                f"cannot make {self.path}, the job's folder: {error.strerror}; log_dir= names a "
                "folder that this machine and the nodes share"
            ) from None

    def key(self) -> Secret:
        """The secret of the hosts.

        Raises:
            SecretError: it is gone, or cannot be opened here.

        """
        try:
            credential = self.sealed.read_bytes()
        except OSError:
            return secret.read(str(self.secret))
        return secret.Secret(munge.open_sealed(credential), str(self.sealed))

    def share(self) -> None:
        """See that this process has the secret of the hosts.

        Raises:
            JobError: it has another, or that of the folder is gone.

        """
        try:
            secret.share(self.key())
        except SecretError as error:
            raise JobError(f"the job's secret cannot be had: {error}") from None

    def plan(self, places: Mapping[int, Place]) -> None:
        """Write the plan."""
        hosts = {str(rank): asdict(place) for rank, place in places.items()}
        document = {"schema": _SCHEMA, "hosts": hosts}
        stored.save(self.path / "plan.json", json.dumps(document).encode())

    def planned(self) -> dict[int, Place]:
        """The plan.

        Raises:
            FileNotFoundError: the job was ended.
            JobStateError: it was changed, and is no plan any more.

        """
        path = self.path / "plan.json"
        document = _read(path)
        hosts = document.get("hosts")
        if document.get("schema") != _SCHEMA or not isinstance(hosts, dict):
            raise JobStateError(
                f'{path} has "schema" {document.get("schema")!r} and hosts {hosts!r}, where schema '
                f"{_SCHEMA} and an object of hosts by their ranks were wanted; {_ADVICE}"
            )
        for rank in hosts:
            if not rank.isdecimal():
                raise JobStateError(f'{path} has a host "{rank}", which is no rank; {_ADVICE}')
        return {
            int(rank): fields.make(Place, place, f"{path}: hosts[{rank}]", _ADVICE)
            for rank, place in hosts.items()
        }

    def arrive(self, rank: int, generation: int, arrival: Arrival) -> None:
        """Say where this host listens."""
        name = f"host-{rank}-{generation}-{arrival.restart}.json"
        stored.save(self.path / name, json.dumps(asdict(arrival)).encode())

    def arrivals(self, places: Mapping[int, Place]) -> dict[int, Arrival]:
        """The latest arrival of each planned host that has arrived.

        Raises:
            JobStateError: a file of one was changed, and says no such thing any more.

        """
        found: dict[int, Arrival] = {}
        for (rank, generation, restart), path in sorted(self._arrived()):
            if rank in places and generation == places[rank].generation:
                with contextlib.suppress(FileNotFoundError):
                    said = {**_read(path), "restart": restart}
                    found[rank] = fields.make(Arrival, said, f"{path}", _ADVICE)
        return found

    def superseded(self, rank: int, generation: int, restart: int) -> bool:
        """Whether SLURM has started this host again since."""
        return any(
            key[:2] == (rank, generation) and key[2] > restart for key, _path in self._arrived()
        )

    def _arrived(self) -> list[tuple[tuple[int, int, int], Path]]:
        found = []
        for path in self.path.iterdir():
            match = _ARRIVAL.fullmatch(path.name)
            if match:
                rank, generation, restart = map(int, match.groups())
                found.append(((rank, generation, restart), path))
        return found

    def renew(self, *, new: bool = False) -> None:
        """Touch the lease."""
        lease = self.path / "lease"
        if new:
            lease.touch(mode=0o600)
        else:
            os.utime(lease)

    def keep(self) -> None:
        """Let the hosts live without a client: the job was stored."""
        (self.path / "lease").unlink(missing_ok=True)

    def lease(self) -> int:
        """When the lease was touched, in nanoseconds of the file system's clock; 0 without one."""
        try:
            return (self.path / "lease").stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def tail(self, ranks: Iterable[int], size: int = 2000) -> str:
        """The last bytes of the first of these hosts' logs that has any."""
        for rank in ranks:
            with contextlib.suppress(OSError):
                data = (self.path / f"host-{rank}.log").read_bytes()[-size:]
                if data.strip():
                    return data.decode(errors="replace").strip()
        return ""

    def remove(self, *, logs: bool) -> None:
        """End what the folder holds together: plan and secret first. With `logs`, these too."""
        names = ["plan.json", "secret", "secret.munge", "lease"]
        with contextlib.suppress(FileNotFoundError):
            names += sorted(path.name for path in self.path.iterdir())
        for name in names:
            if logs or not name.endswith(".log"):
                with contextlib.suppress(FileNotFoundError):
                    (self.path / name).unlink()
        with contextlib.suppress(OSError):  # logs are in it
            self.path.rmdir()


def _read(path: Path) -> dict[str, Any]:
    """The object that a file holds.

    Raises:
        JobStateError: it holds none.

    """
    data = path.read_bytes()
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise JobStateError(f"{path} is not JSON ({error}); {_ADVICE}") from None
    if not isinstance(found, dict):
        raise JobStateError(f"{path} holds no object; {_ADVICE}")
    return found
