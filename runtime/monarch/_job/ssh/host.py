"""What an SSHJob runs on a host: `serve NODE IP PORT SECONDS`, or `check` or `end PID STARTED`.

`serve` reads the secret from its first line of input, says in a line of JSON where it listens, and
ends with its input, unless a line "keep" comes before that: then its job was stored. Where the
network does not tell of that end, it ends so many seconds after the last program that used it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from monarch._job.attached import Lease
from monarch._job.interface import url
from monarch._job.process import start_time
from monarch._job.worker import Serving
from monarch._link import secret

_LOOK = 2.0  # seconds between two looks at the lease
_ORDERLY = 10.0  # seconds to end in order before a host is killed


def main() -> None:
    """Do what the arguments say."""
    what, *arguments = sys.argv[1:]
    if what == "serve":
        _serve(*arguments)
    else:
        pid, started = map(int, arguments)
        sys.exit(_end(pid, started) if what == "end" else int(start_time(pid) != started))


def _serve(node: str, bind: str, port: str, seconds: str) -> None:
    line = sys.stdin.buffer.readline()
    reader, writer = os.pipe()
    os.write(writer, bytes.fromhex(line.decode("ascii")))
    os.close(writer)
    secret.adopt(reader)
    os.environ["MONARCH_NODE_ID"] = node
    towards = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    with Serving(url(bind, int(port), towards)) as service:
        lease = Lease(service.here, float(seconds), waits=True)
        here = {"address": service.address, "pid": os.getpid(), "started": start_time(os.getpid())}
        _say(json.dumps(here))

        def read() -> None:
            if sys.stdin.buffer.readline() != b"keep\n":
                service.ended.set()
                return
            lease.keep()
            _say("kept")
            quiet = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(quiet, number)

        service.here.start_thread(read, "monarch-lease")
        while not service.ended.wait(_LOOK) and not lease.expired():
            pass


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _end(pid: int, started: int) -> int:
    """0 once the process that started then is gone."""
    until = time.monotonic() + _ORDERLY
    number = signal.SIGTERM
    while start_time(pid) == started:
        if time.monotonic() > until:
            if number == signal.SIGKILL:
                return 1
            number, until = signal.SIGKILL, time.monotonic() + _ORDERLY
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return 0
        time.sleep(0.1)
    return 0


if __name__ == "__main__":
    main()
