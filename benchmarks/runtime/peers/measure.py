"""Percentiles, and what a tree of processes uses, as /proc tells it."""

from __future__ import annotations

import os
from pathlib import Path

_KIB = 1024.0
_NANOSECONDS = 1e9


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def memory(pid: int | str = "self") -> dict[str, float]:
    """MiB of a process: `resident`, `peak`, `own` (its share of shared pages); and `threads`."""
    names = {"VmRSS": "resident", "VmHWM": "peak"}
    found: dict[str, float] = {}
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        lines += Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:  # it has ended
        return found
    for line in lines:
        key, _, value = line.partition(":")
        if key in names:
            found[names[key]] = int(value.split()[0]) / _KIB
        elif key == "Threads":
            found["threads"] = int(value)
        elif key == "Pss":
            found["own"] = int(value.split()[0]) / _KIB
    return found


def tree(root: int | None = None) -> list[int]:
    """`root` (this process when not given) and all its descendants."""
    children: dict[int, list[int]] = {}
    for name in [entry.name for entry in Path("/proc").iterdir()]:
        if name.isdigit():
            try:
                stat = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(name))
    found, pending = [], [os.getpid() if root is None else root]
    while pending:
        pid = pending.pop()
        found.append(pid)
        pending += children.get(pid, [])
    return found


def processor_seconds(pids: list[int], without: int = 0) -> float:
    """Time on a CPU that the threads of these processes have had so far, to the nanosecond.

    `without` is the native id of a thread that is not counted.
    """
    total = 0
    for pid in pids:
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
        except OSError:
            continue
        for task in tasks:
            if task.name == str(without):
                continue
            try:
                stat = (task / "schedstat").read_text(encoding="ascii")
            except OSError:
                continue
            total += int(stat.split()[0])
    return total / _NANOSECONDS


def footprint(worker: int) -> dict[str, object]:
    """Memory of this process, of one worker, and of the whole tree (shared pages counted once)."""
    pids = tree()
    return {
        "controller": memory(),
        "worker": memory(worker),
        "processes": len(pids),
        "tree": sum(memory(pid).get("own", 0.0) for pid in pids),
    }
