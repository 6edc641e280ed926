"""The workloads W1 to W8 as jobs, each for a fresh interpreter; a job fills one flat result."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

from peers import measure
from peers.measure import percentile
from peers.peer import now

if TYPE_CHECKING:
    from peers.peer import Peer

Result = dict[str, Any]
Scale = dict[str, int]
FULL: Scale = {
    "calls": 5000, "warm": 500, "pipelined": 10_000, "gathers": 1000, "large_gathers": 300,
    "kib": 500, "mib": 40, "mib64": 4, "local": 10_000,
}  # fmt: skip
QUICK: Scale = {
    "calls": 1000, "warm": 200, "pipelined": 5000, "gathers": 200, "large_gathers": 50,
    "kib": 100, "mib": 20, "mib64": 0, "local": 2000,
}  # fmt: skip
_PAYLOADS = (("kib", 1 << 10), ("mib", 1 << 20), ("mib64", 64 << 20))
_DEAD, _GROUP = 3, 8
_REPEATS, _ENOUGH = 3, 4.0  # times that a short loop is repeated; seconds after which it is not
_NAMED = 300  # characters kept of an error


def since_start() -> float:
    """Seconds since the harness started this interpreter."""
    return time.monotonic() - float(os.environ["BENCH_STARTED"])


def _calls(result: Result, peer: Peer, group: Any, scale: Scale) -> None:
    peer.latencies(group, 0, scale["warm"])
    taken = peer.latencies(group, 0, scale["calls"])
    result["call_us"] = percentile(taken, 0.5) * 1e6
    result["call_p99_us"] = percentile(taken, 0.99) * 1e6
    result["calls_per_s"] = len(taken) / sum(taken)
    peer.pipelined(group, 0, scale["pipelined"] // 10)
    seconds = [peer.pipelined(group, 0, scale["pipelined"])]
    while len(seconds) < _REPEATS and sum(seconds) < _ENOUGH:
        seconds.append(peer.pipelined(group, 0, scale["pipelined"]))
    result["pipelined_per_s"] = scale["pipelined"] / percentile(seconds, 0.5)


def one(peer: Peer, result: Result, scale: Scale) -> None:
    """W5 for one process, W7, W1, W2, W4."""
    peer.boot()
    start = now()
    group = peer.spawn(1)
    (worker,) = peer.call_all(group, "pid")
    result["spawn_s"], result["cold_s"] = now() - start, since_start()
    assert worker != os.getpid()
    result["footprint"] = measure.footprint(worker)
    _calls(result, peer, group, scale)
    result["footprint_after"] = measure.footprint(worker)
    _payloads(result, peer, group, scale)


def _payloads(result: Result, peer: Peer, group: Any, scale: Scale) -> None:
    import numpy as np  # noqa: PLC0415 - its memory is not the peer's

    for label, size in _PAYLOADS:
        if not scale[label]:
            continue
        for kind in ("bytes", "array"):
            payload: Any = os.urandom(1024) * (size // 1024)
            if kind == "array":
                payload = np.frombuffer(bytearray(payload), dtype="uint8")
            try:
                peer.echoes(group, 0, payload, 5 if size < 2 << 20 else 2)
                taken = peer.echoes(group, 0, payload, scale[label])
            except Exception as error:  # noqa: BLE001 - a peer that cannot do it has no figure
                result[f"{label}_{kind}_error"] = repr(error)[:_NAMED]
            else:
                result[f"{label}_{kind}_mb_s"] = 2 * size / percentile(taken, 0.5) / 1e6
                result[f"{label}_{kind}_us"] = percentile(taken, 0.5) * 1e6


def loop(peer: Peer, result: Result, scale: Scale) -> None:
    """W1 and W2 with async endpoints."""
    peer.boot()
    group = peer.spawn(1)
    _calls(result, peer, group, scale)


def _mesh(peer: Peer, result: Result, scale: Scale, count: int) -> None:
    start = now()
    peer.boot()
    result["boot_s"] = now() - start
    start = now()
    group = peer.spawn(count)
    pids = peer.call_all(group, "pid")
    result["spawn_s"], result["cold_s"] = now() - start, since_start()
    assert len(set(pids)) == count
    result["footprint"] = measure.footprint(pids[0])
    peer.gathers(group, 20)
    taken = peer.gathers(group, scale["gathers" if count <= _GROUP else "large_gathers"])
    result["gather_ms"] = percentile(taken, 0.5) * 1e3
    result["gather_p99_ms"] = percentile(taken, 0.99) * 1e3
    result["tree_mb"] = sum(measure.memory(pid).get("own", 0.0) for pid in measure.tree())


def mesh8(peer: Peer, result: Result, scale: Scale) -> None:
    """W5 and W3 for 8 processes."""
    _mesh(peer, result, scale, 8)


def mesh32(peer: Peer, result: Result, scale: Scale) -> None:
    """W5 and W3 for 32 processes."""
    _mesh(peer, result, scale, 32)


def _failed(wait: Any) -> str:
    try:
        wait()
    except BaseException as error:  # noqa: BLE001 - peers raise what they like
        return f"{type(error).__name__}: {error}"[:_NAMED]
    return "no error"


def _group(peer: Peer) -> tuple[Any, list[int]]:
    peer.boot()
    group = peer.spawn(_GROUP)
    pids = peer.call_all(group, "pid")
    peer.gathers(group, 20)
    return group, pids


def _aftermath(peer: Peer, result: Result, group: Any) -> None:
    alive = [peer.call(group, rank, "inc", 1) for rank in range(_GROUP) if rank != _DEAD]
    result["others_answer"] = alive == [2] * (_GROUP - 1)
    start = now()
    group = peer.replace(group, _DEAD)
    assert list(peer.call_all(group, "inc", 1)) == [2] * _GROUP
    result["replace_ms"] = (now() - start) * 1e3


def idle(peer: Peer, result: Result, _: Scale) -> None:
    """W6: a process of an idle group is killed; how long until the next call to it fails."""
    group, pids = _group(peer)
    peer.wait([])
    time.sleep(0.3)
    os.kill(pids[_DEAD], signal.SIGKILL)
    start = now()
    result["error"] = _failed(lambda: peer.call(group, _DEAD, "inc", 1))
    result["detect_ms"] = (now() - start) * 1e3
    _aftermath(peer, result, group)


def busy(peer: Peer, result: Result, _: Scale) -> None:
    """W6: a process is killed at work; how long until the call to it fails."""
    group, pids = _group(peer)
    pending = peer.submit(group, _DEAD, "sleep", 100)
    peer.call(group, 0, "sleep", 0.3)
    os.kill(pids[_DEAD], signal.SIGKILL)
    start = now()
    result["error"] = _failed(lambda: peer.wait([pending]))
    result["detect_ms"] = (now() - start) * 1e3
    _aftermath(peer, result, group)


def push(peer: Peer, result: Result, _: Scale) -> None:
    """W6: a process of an idle group is killed; how long until the peer says so by itself."""
    _, pids = _group(peer)
    if not peer.tells_of_deaths:
        result["error"] = "no notice in its API"
        return
    time.sleep(0.3)
    os.kill(pids[_DEAD], signal.SIGKILL)
    start = now()
    result["error"] = peer.wait_for_notice(60)[:_NAMED]
    result["detect_ms"] = (now() - start) * 1e3


def local(peer: Peer, result: Result, scale: Scale) -> None:
    """W8: many actors in one process, each made and called once."""
    peer.boot()
    peer.wait([])
    count, before = int(os.environ.get("BENCH_LOCAL", scale["local"])), measure.memory()
    start = now()
    group = peer.spawn_local(count)
    made = now()
    values = peer.wait([peer.submit(group, rank, "inc", 1) for rank in range(count)])
    taken = now() - start
    assert list(values) == [2] * count
    after = measure.memory()
    result["actors_per_s"], result["create_s"] = count / taken, made - start
    result["kib_per_actor"] = (after["resident"] - before["resident"]) * 1024 / count
    result["threads_added"] = after["threads"] - before["threads"]


JOBS = {job.__name__: job for job in (one, loop, mesh8, mesh32, idle, busy, push, local)}
