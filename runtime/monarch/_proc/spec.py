"""What a process is started with, and what is told about its end."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

HOSTS = "hosts"
GPUS = "gpus"


class ProcSpec:
    """One process to start.

    `extent` is the proc mesh's labels and sizes and `rank` the place in it; `per_host` names the
    dimensions that lie within one host (all but "hosts" when it is empty), `host` is the host's
    index. `environment` is set over the parent's and over what rank and devices give; a value of
    None unsets a variable. `bind` holds any of cpunodebind, membind, physcpubind and cpus.
    `bootstrap` is a pickled callable, `command` a program with its arguments that is run in place
    of the forked interpreter; `incarnation` counts the processes that had this rank. `board` is the
    number of the page on which it says what it is doing, -1 without one.
    """

    __slots__ = (
        "bind",
        "board",
        "bootstrap",
        "command",
        "environment",
        "extent",
        "host",
        "id",
        "incarnation",
        "name",
        "owner",
        "per_host",
        "rank",
    )

    def __init__(
        self,
        id: int,  # noqa: A002 - the word for it everywhere
        rank: int = 0,
        extent: tuple[Sequence[str], Sequence[int]] = ((), ()),
        name: str = "procs",
        environment: Mapping[str, str | None] | None = None,
        bind: Mapping[str, str] | None = None,
        bootstrap: bytes | None = None,
        command: Sequence[str] | None = None,
        owner: int = 0,
        incarnation: int = 0,
        host: int = 0,
        per_host: Sequence[str] = (),
        board: int = -1,
    ) -> None:
        self.id = id
        self.rank = rank
        self.extent = (tuple(extent[0]), tuple(extent[1]))
        self.name = name
        self.environment = dict(environment or {})
        self.bind = dict(bind or {})
        self.bootstrap = bootstrap
        self.command = None if command is None else list(command)
        self.owner = owner
        self.incarnation = incarnation
        self.host = host
        self.per_host = tuple(per_host)
        self.board = board

    def __repr__(self) -> str:
        return f"ProcSpec({self.label}, id={self.id:016x})"

    @property
    def label(self) -> str:
        """Name and rank, as they stand before each line that the process prints."""
        return f"{self.name} {self.rank}"

    def coordinates(self) -> dict[str, int]:
        """The process's index in each dimension of the mesh."""
        labels, sizes = self.extent
        found: dict[str, int] = {}
        rest = self.rank
        for label, size in zip(reversed(labels), reversed(sizes), strict=True):
            rest, found[label] = divmod(rest, size)
        return found

    def local(self) -> tuple[int, int]:
        """Rank among the mesh's processes on this host, and how many these are."""
        labels, sizes = self.extent
        inside = self.per_host or tuple(label for label in labels if label != HOSTS)
        where = self.coordinates()
        rank, count = 0, 1
        for label, size in zip(labels, sizes, strict=True):
            if label in inside:
                rank, count = rank * size + where[label], count * size
        return rank, count

    def device(self) -> tuple[int, int] | None:
        """Index in the dimension "gpus" of a host and its size; None without that dimension."""
        labels, sizes = self.extent
        if GPUS not in (self.per_host or labels):
            return None
        return self.coordinates()[GPUS], sizes[labels.index(GPUS)]

    def values(self) -> tuple[Any, ...]:
        """Plain values, from which `from_values` makes an equal one elsewhere."""
        return tuple(getattr(self, name) for name in _ORDER)

    @classmethod
    def from_values(cls, values: tuple[Any, ...]) -> ProcSpec:
        """The spec that gave these `values`."""
        return cls(**dict(zip(_ORDER, values, strict=True)))


_ORDER = ProcSpec.__slots__


class ExitReport:
    """The end of one process: `code` or `signal` is set, the other None.

    Neither is set for a process that never ran, and then `reason` says why; otherwise it says what
    there is to add. `seconds` is how long it ran, `time` when it ended (seconds since the epoch).
    `expected`: it was told to stop. `forced`: it had to be killed since it did not.
    """

    __slots__ = (
        "code",
        "expected",
        "forced",
        "pid",
        "proc",
        "reason",
        "seconds",
        "signal",
        "time",
    )

    def __init__(
        self,
        proc: int,
        pid: int,
        code: int | None = None,
        signal: int | None = None,
        seconds: float = 0.0,
        *,
        time: float = 0.0,
        reason: str = "",
        expected: bool = False,
        forced: bool = False,
    ) -> None:
        self.proc = proc
        self.pid = pid
        self.code = code
        self.signal = signal
        self.seconds = seconds
        self.time = time
        self.reason = reason
        self.expected = expected
        self.forced = forced

    def __repr__(self) -> str:
        return f"ExitReport(proc={self.proc:016x}, pid={self.pid}, {self.cause()!r})"

    def cause(self) -> str:
        """The end in words, as "exit code 7" or "signal SIGKILL"."""
        if self.signal is not None:
            words = f"signal {signal_name(self.signal)}"
        elif self.code is not None:
            words = f"exit code {self.code}"
        else:
            words = "did not start"
        return f"{words}: {self.reason}" if self.reason else words

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for a message to another process."""
        return {name: getattr(self, name) for name in self.__slots__}


def ended(status: int | None) -> str:
    """What a wait status says in words; 0 also stands for one that is not known."""
    import os  # noqa: PLC0415 - for a death only

    code = os.waitstatus_to_exitcode(status or 0)
    if code < 0:
        return f"was killed by signal {signal_name(-code)}"
    return f"ended with exit code {code}" if code else "ended"


def signal_name(number: int) -> str:
    """A signal's name, as SIGKILL; its number where it has none."""
    import signal  # noqa: PLC0415 - costs a millisecond, needed for a death only

    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
