"""What is known of one death: the record that supervisors, hooks and errors carry.

Plain data that pickles, and its text. It names what the user named (meshes, ranks, actors,
endpoints, hosts) and nothing of the runtime's own.
"""

from __future__ import annotations

__all__ = ["KINDS", "Cause", "MeshFailure", "ranks_text"]

KINDS = {
    "signal": "was killed by",
    "exit": "ended with",
    "lost": "was lost",
    "hung": "hung",
    "start": "did not start",
    "init": "failed in its constructor",
    "error": "failed",
    "aborted": "was aborted",
    "undeliverable": "could not deliver a message",
}
"""What can happen to a rank, and the words for it."""


def ranks_text(ranks: tuple[int, ...]) -> str:
    """`rank 3`, or `ranks 0-2, 7` with neighbours joined; `some rank` where none is known."""
    if not ranks:
        return "some rank"
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    names = [str(a) if a == b else f"{a}-{b}" for a, b in spans]
    return ("rank " if len(set(ranks)) == 1 else "ranks ") + ", ".join(names)


class Cause:
    """One exception of a chain as text: `type`, `text` and, where there is one, `traceback`."""

    __slots__ = ("text", "traceback", "type")

    def __init__(self, type: str, text: str, traceback: str = "") -> None:  # noqa: A002 - the field's name
        self.type = type
        self.text = text
        self.traceback = traceback

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cause):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> tuple[type[Cause], tuple[str, str, str]]:
        return Cause, self._values()

    def __repr__(self) -> str:
        return f"Cause({self.type!r}, {self.text!r})"

    def __str__(self) -> str:
        return f"{self.type}: {self.text}" if self.text else self.type

    def _values(self) -> tuple[str, str, str]:
        return self.type, self.text, self.traceback


class MeshFailure:
    """One death in a mesh, as its owner learns of it.

    Attributes:
        kind: one of `KINDS`.
        mesh_name: the name the mesh was spawned with.
        ranks: ranks of that mesh, unsliced, that are lost; several where they died together.
        host: the name of the machine; empty where it is not known.
        node_id: the host's id in its job, what `replace_node` takes.
        pid: the process that ended, or in which the actor failed.
        exit_code: of a process that ended by itself.
        signal: the name of the signal that ended it, as `SIGSEGV`.
        actor: the name of the actor whose endpoint was running, or that failed.
        endpoint: the endpoint that was running; empty between messages.
        message: what was given as reason, where there was no exception.
        causes: the exceptions that led here, the last one the root.
        passed_by: owners that did not handle it, the nearest first.
        incarnation: how often the rank had been replaced before.
        time: when it was noticed, in seconds since the epoch.
        death: tells this death from any other; the same on every way it is reported.
        replaceable: whether `replace_node` of its mesh puts another host in its place.

    """

    __slots__ = (
        "actor",
        "causes",
        "death",
        "endpoint",
        "exit_code",
        "host",
        "incarnation",
        "kind",
        "mesh_name",
        "message",
        "node_id",
        "passed_by",
        "pid",
        "ranks",
        "replaceable",
        "signal",
        "time",
    )

    def __init__(
        self,
        kind: str,
        mesh_name: str,
        ranks: tuple[int, ...] = (),
        *,
        host: str = "",
        node_id: str = "",
        pid: int | None = None,
        exit_code: int | None = None,
        signal: str | None = None,
        actor: str = "",
        endpoint: str = "",
        message: str = "",
        causes: tuple[Cause, ...] = (),
        passed_by: tuple[str, ...] = (),
        incarnation: int = 0,
        time: float = 0.0,
        death: str = "",
        replaceable: bool = False,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"a failure is of kind {', '.join(KINDS)}, not {kind!r}")
        self.kind = kind
        self.mesh_name = mesh_name
        self.ranks = tuple(sorted(set(ranks)))
        self.host = host
        self.node_id = node_id
        self.pid = pid
        self.exit_code = exit_code
        self.signal = signal
        self.actor = actor
        self.endpoint = endpoint
        self.message = message
        self.causes = causes
        self.passed_by = passed_by
        self.incarnation = incarnation
        self.time = time
        self.death = death
        self.replaceable = replaceable

    @property
    def mesh(self) -> None:
        """Always None: a failure outlives its mesh. It is there for programs that look at it."""
        return

    @property
    def proc_lost(self) -> bool:
        """Whether the process is gone with its rank, not one actor in it alone."""
        return self.kind in {"signal", "exit", "lost", "hung", "start"}

    @property
    def running(self) -> str:
        """`actor.endpoint` that was running, or as much of it as is known."""
        return ".".join(part for part in (self.actor, self.endpoint) if part)

    def replace(self, **changes: object) -> MeshFailure:
        """A copy with some fields changed."""
        fields = {name: getattr(self, name) for name in self.__slots__} | changes
        return MeshFailure(**fields)

    def summary(self) -> str:
        """One line: who, what happened, what was running, process and host."""
        what = KINDS[self.kind]
        if self.kind == "signal":
            what += f" signal {self.signal}"
        elif self.kind == "exit":
            what += f" exit code {self.exit_code}"
        who = f"{ranks_text(self.ranks)} of mesh {self.mesh_name!r}"
        text = f"{who if self.mesh_name else 'a process'} {what}"
        if self.endpoint:
            text += f" while {self.running} was running"
        elif self.actor not in {"", self.mesh_name}:
            text += f" ({self.actor})"
        reason = str(self.causes[0]) if self.causes else self.message
        if reason:
            text += f": {reason}"
        return text if not self._where() else f"{text} [{self._where()}]"

    def report(self) -> str:
        """The summary, then where and when, then the chain of causes with their tracebacks."""
        import time  # noqa: PLC0415 - nothing else of the module needs it

        lines = [self.summary()]
        if self.time:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.time))
            lines.append(f"  noticed {at} UTC")
        if self.incarnation:
            lines.append(f"  incarnation {self.incarnation}: replaced that often before")
        if self.message and self.causes:
            lines.append(f"  {self.message}")
        lines += [f"  not handled by {owner}" for owner in self.passed_by]
        for depth, cause in enumerate(self.causes):
            if depth:
                lines.append(f"  caused by {cause}")
            lines += [f"    {line}" for line in cause.traceback.rstrip().splitlines()]
        return "\n".join(lines)

    def _where(self) -> str:
        parts = []
        if self.pid is not None:
            parts.append(f"pid {self.pid}")
        if self.host:
            parts.append(f"host {self.host}")
        if self.node_id and self.node_id != self.host:
            parts.append(f"node {self.node_id}")
        return ", ".join(parts)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<MeshFailure: {self.summary()}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MeshFailure):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.death, self.mesh_name, self.ranks))

    def __reduce__(self) -> tuple[object, tuple[dict[str, object]]]:
        return _rebuild, ({name: getattr(self, name) for name in self.__slots__},)


def _rebuild(fields: dict[str, object]) -> MeshFailure:
    known = {name: value for name, value in fields.items() if name in MeshFailure.__slots__}
    return MeshFailure(**known)  # type: ignore[arg-type]
