"""The peers: what each needs from the package index, its adapter, and its jobs."""

from __future__ import annotations

from dataclasses import dataclass, field

WORK = ("one", "mesh8", "mesh32", "idle", "busy")


@dataclass(frozen=True)
class Entry:
    """A peer. Without requirements it runs on the standard library of the session's Python."""

    name: str
    adapter: str
    requirements: tuple[str, ...] = ()
    jobs: tuple[str, ...] = WORK
    environment: dict[str, str] = field(default_factory=dict)
    quick: bool = True


OURS = "monarch"
NUMPY = "numpy==2.4.6"
CLOUDPICKLE = "cloudpickle==3.1.3"
PEERS = (
    Entry(
        OURS,
        "monarch_actors",
        (NUMPY, CLOUDPICKLE, "click", "packaging", "pyelftools"),
        (*WORK, "push", "loop", "local", "growth", "slope", "queued", "waiting", "resting"),
    ),
    Entry("sockets", "fork_pickle", (NUMPY,)),
    Entry("pyzmq", "zeromq", (NUMPY, "pyzmq==27.3.0"), ("one", "mesh8", "mesh32")),
    Entry(
        "torchmonarch",
        "torchmonarch_actors",
        (NUMPY, "torchmonarch==0.7.0"),
        (*WORK, "push", "loop", "local"),
        {"BENCH_LOCAL": "600"},
        quick=False,
    ),
    Entry(
        "xoscar",
        "xoscar_actors",
        (NUMPY, "xoscar==0.12.2", "uvloop==0.23.0"),
        (*WORK, "push", "local"),
        quick=False,
    ),
    Entry(
        "ray",
        "ray_actors",
        (NUMPY, "ray==2.60.0"),
        WORK,
        {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"},
        quick=False,
    ),
)
BOTH_REGIMES = ("one", "loop", "mesh8", "mesh32")  # the other jobs run on idle cores alone


def named(name: str) -> Entry:
    return next(entry for entry in PEERS if entry.name == name)
