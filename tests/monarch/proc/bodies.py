"""What the processes of these tests run in place of actors: small programs on a raw link."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

SEEN_AT_IMPORT = {name: os.environ.get(name) for name in ("RANK", "CUDA_VISIBLE_DEVICES")}
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def serve(spec, link, settings, ready):
    """Answer each line with what it evaluates to; end with 0 at the end of the link."""
    ready()
    if "boards" in settings:
        os.close(settings.pop("boards"))  # an engine would keep a page of it
    names = {"spec": spec, "settings": settings}
    with socket.socket(fileno=link).makefile("rw") as wire:
        for line in wire:
            try:
                answer = json.dumps(eval(line, globals(), names))  # noqa: S307 - the test wrote it
            except Exception as error:  # noqa: BLE001 - the test looks at it
                answer = json.dumps(repr(error))
            wire.write(answer + "\n")
            wire.flush()
    return 0


def leave(code):
    def end():
        os._exit(code)

    signal.signal(signal.SIGALRM, lambda *_: end())
    signal.setitimer(signal.ITIMER_REAL, 0.001)


def daemon():
    """A grandchild that left everything: its parent, its session, its group."""
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        last = os.fork()
        if last:
            os._exit(0)
        os.write(writing, str(os.getpid()).encode())
        os.close(writing)
        time.sleep(600)
        os._exit(0)
    os.waitpid(middle, 0)
    os.close(writing)
    return int(os.read(reading, 20))


def plain_child(*, new_session=False):
    return subprocess.Popen(SLEEP, start_new_session=new_session).pid


def interrupted_child():
    program = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    return subprocess.run([sys.executable, "-c", program], stderr=-3, check=False).returncode


def descriptors():
    """Open descriptors with what they lead to."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        try:
            found[path.name] = str(path.readlink())
        except OSError:
            continue  # the listing's own
    return found


def deaf(spec, link, settings, ready):
    """Ignore SIGTERM and the end of the link."""
    ready()
    signal.signal(signal.SIGTERM, lambda *_: None)
    socket.socket(fileno=link).send(b"deaf\n")
    while True:
        time.sleep(600)


def failing(spec, link, settings, ready):
    raise RuntimeError("no work today")
