"""`python -m peers ADAPTER JOB SCALE`: one job of one peer; prints a line that starts with JSON."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

from peers import measure

if TYPE_CHECKING:
    from peers.peer import Peer


def main() -> None:
    adapter, job, *rest = sys.argv[1:]
    module = importlib.import_module(f"peers.{adapter}")
    if job == "serve":
        module.serve(*rest)
        return
    from peers import jobs  # noqa: PLC0415 - a worker of a peer does not need them

    peer: Peer = (module.LoopAdapter if job == "loop" else module.Adapter)()
    result: dict[str, Any] = {}
    try:
        own = None if job in jobs.JOBS else importlib.import_module("peers.own")
        work = jobs.JOBS[job] if own is None else own.JOBS[job]
        work(peer, result, jobs.QUICK if rest == ["quick"] else jobs.FULL)
    except BaseException as error:  # noqa: BLE001 - what failed is a result
        traceback.print_exc()
        result["failed"] = repr(error)[:500]
    import json  # noqa: PLC0415 - after the cold start

    print("JSON " + json.dumps(result), flush=True)
    descendants = measure.tree()[1:]
    try:
        peer.close()
    except BaseException:  # noqa: BLE001 - there is a result already
        traceback.print_exc()
    for pid in descendants:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    os._exit(0)


main()
