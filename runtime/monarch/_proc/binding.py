"""Binding a process to processors and to the memory beside them.

The keys and their values are numactl's and taskset's: `cpunodebind` (nodes whose processors to run
on), `physcpubind` and `cpus` (processors), `membind` (nodes to take memory from). A value is a list
as "0-3,8". The system is asked itself: neither of the two programs is needed.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS = ("cpunodebind", "membind", "physcpubind", "cpus")
_NODES = "/sys/devices/system/node"


def numbers(text: str, key: str) -> list[int]:
    """The numbers of a list as "0-3,8", in order.

    Raises:
        ValueError: it is no such list.

    """
    found: set[int] = set()
    for part in str(text).split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(
                f"proc_bind: {key}={text!r} is no list of numbers; write it as '0-3,8'"
            )
        low, high = int(first), int(last or first)
        if high < low or high >= 65536:
            wanted = "a range goes from the lower number to the higher, which is below 65536"
            raise ValueError(f"proc_bind: {key}={text!r}: {part.strip()} cannot be; {wanted}")
        found.update(range(low, high + 1))
    return sorted(found)


def check(bind: Mapping[str, str]) -> None:
    """Refuse a binding that cannot be meant.

    Raises:
        ValueError: an unknown key, or a value that is no list of numbers.

    """
    for key, value in bind.items():
        if key not in KEYS:
            raise ValueError(f"proc_bind: unknown key {key!r}; known are {', '.join(KEYS)}")
        numbers(value, key)


def apply(bind: Mapping[str, str]) -> None:
    """Bind this process, and those it will make.

    Raises:
        ValueError: as `check`, or processors and nodes that this machine does not have.
        OSError: this system cannot bind memory or processors.

    """
    check(bind)
    processors: set[int] | None = None
    for key in ("cpunodebind", "physcpubind", "cpus"):
        if key not in bind:
            continue
        wanted = set(numbers(bind[key], key))
        if key == "cpunodebind":
            wanted = set().union(*(_node_processors(node) for node in sorted(wanted)))
        processors = wanted if processors is None else processors & wanted
    if processors is not None:
        _run_on(processors, bind)
    if "membind" in bind:
        from monarch import _core  # noqa: PLC0415 - few processes are bound

        nodes = numbers(bind["membind"], "membind")
        try:
            _core.bind_memory(nodes)
        except OSError as error:
            raise OSError(
                error.errno, f"proc_bind: membind={bind['membind']!r}: {error.strerror}"
            ) from None


def _run_on(processors: set[int], bind: Mapping[str, str]) -> None:
    if not hasattr(os, "sched_setaffinity"):
        raise OSError(f"proc_bind: this system cannot bind a process to processors: {dict(bind)}")
    try:
        os.sched_setaffinity(0, processors)
    except (OSError, ValueError) as error:
        allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        raise ValueError(
            f"proc_bind: {dict(bind)} leaves no processor this process may run on; "
            f"it may run on {allowed}"
        ) from error


def _node_processors(node: int) -> set[int]:
    path = f"{_NODES}/node{node}/cpulist"
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError as error:
        raise ValueError(
            f"proc_bind: cpunodebind names node {node}, which this machine does not have "
            f"({path} cannot be read: {error.strerror})"
        ) from None
    return set(numbers(text, path)) if text else set()
