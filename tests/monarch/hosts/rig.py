"""Several hosts: `monarch serve` in network namespaces, and programs that attach to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from monarch.actor import Actor, endpoint, this_proc

if TYPE_CHECKING:
    from ci.rigs.namespaces import Network

ROOT = Path(__file__).resolve().parents[3]
PORT = 26600
SECONDS = 90  # that anything here may take

# What every program begins with.
_PREAMBLE = """
import json, os, signal, sys, threading, time
import monarch.actor
from monarch.actor import attach_to_workers, this_host
from monarch.errors import *
from tests.monarch.hosts.rig import Who
def tell(**values):
    print(json.dumps(values), flush=True)
def attached(*addresses):
    return attach_to_workers(ca="trust_all_connections", workers=list(addresses))
failures = []
failed = threading.Condition()
def hook(failure):
    with failed:
        failures.append((time.monotonic(), failure))
        failed.notify_all()
def next_failure(seconds=30):
    with failed:
        assert failed.wait_for(lambda: failures, seconds), "no failure was told"
        return failures.pop(0)
monarch.actor.unhandled_fault_hook = hook
"""


class Who(Actor):
    """Tells where it is, asks others, and keeps count."""

    def __init__(self):
        self.kept = []

    @endpoint
    def pid(self):
        return os.getpid()

    @endpoint
    def network(self):
        return str(Path("/proc/self/ns/net").readlink())

    @endpoint
    def ask(self, other):
        return other.pid.call_one().get(60)

    @endpoint
    def send_back(self, port):
        port.send(os.getpid())

    @endpoint
    def echo(self, value):
        return value

    @endpoint
    def keep(self, value):
        self.kept.append(value)

    @endpoint
    def everything(self):
        return self.kept

    @endpoint
    def spawn_inside(self):
        self.inner = this_proc().host_mesh.spawn_procs(per_host={"inner": 1}).spawn("inner", Who)
        return self.inner

    @endpoint
    def nap(self, seconds):
        time.sleep(seconds)

    @endpoint
    def hang(self):
        time.sleep(3600)


class Hosts:
    """A network whose first host runs programs; what is started ends with `close`."""

    def __init__(self, network: Network, folder: Path) -> None:
        self.network = network
        self.folder = folder
        self.secret = folder / "secret"
        self.secret.touch(0o600)
        self.secret.write_bytes(os.urandom(32))
        self.here, *self.others = network.hosts
        self.started: list[subprocess.Popen] = []

    def start(self, host, arguments, variables=None, before=(), **options):
        """A Python program on a host, with the secret, run by the command `before`."""
        environment = {name: value for name, value in os.environ.items() if "MONARCH" not in name}
        environment |= {
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
            "MONARCH_SECRET_FILE": str(self.secret),
            "MONARCH_PRELOAD_MODULES": "tests.monarch.hosts.rig",
            "HOME": str(self.folder),
            **(variables or {}),
        }
        pipe = subprocess.PIPE
        program = host.start(
            [*before, sys.executable, *arguments],
            env={name: value for name, value in environment.items() if value is not None},
            **{"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, **options},
        )
        self.started.append(program)
        return program

    def serve(self, host, *options, listen=None, variables=None, before=()):
        """`monarch serve` on a host, and the address at which it can be attached to."""
        listen = listen or f"tcp://{host.address}:{PORT}"
        arguments = ["-m", "monarch", "serve", "--json", "--listen", listen, *options]
        program = self.start(host, arguments, variables, before, stderr=None)
        line = program.stdout.readline()
        assert line, "monarch serve ended"
        return program, json.loads(line)["address"]

    def begin(self, code, *arguments, variables=None):
        """A program on the first host, which is written to by its `stdin`."""
        arguments = ["-c", _PREAMBLE + code, *arguments]
        return self.start(self.here, arguments, variables, stdin=subprocess.PIPE, stderr=None)

    def run(self, code, *arguments, variables=None, seconds=SECONDS):
        """What a program on the first host tells, in one dict."""
        program = self.begin(code, *arguments, variables=variables)
        out, _ = program.communicate(timeout=seconds)
        assert program.returncode == 0, f"status {program.returncode}: {out}"
        told: dict = {}
        for line in out.splitlines():
            if line.startswith("{"):
                told |= json.loads(line)
        return told

    def close(self):
        """End everything."""
        self.network.close()
        for program in self.started:
            program.communicate()
