"""What hosts on a network cost: calls, deaths and silence, with namespaces for hosts.

Prints one line of JSON: microseconds of a round trip (median) of bare loopback TCP, of a call to an
actor of another host in the clear and through TLS, all on one core; milliseconds from kill -9 of a
process of another host to its failure; seconds from a cut and from a SIGSTOP of a host to the
failure, at two heartbeats. Needs root, `ip` and `nft`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "runtime")]

from ci.rigs.namespaces import Host, Network, missing  # noqa: E402 - found by the lines above

_CALLS = 5000
_DEATHS = 10

_PREAMBLE = """
import os, signal, sys, threading, time
import monarch.actor
from monarch.actor import Actor, attach_to_workers, endpoint
class Echo(Actor):
    @endpoint
    def echo(self, value): return value
    @endpoint
    def pid(self): return os.getpid()
told = []
came = threading.Condition()
def hook(failure):
    with came:
        told.append(time.monotonic())
        came.notify_all()
def wait():
    with came:
        assert came.wait_for(lambda: told, 30)
        return told.pop(0)
monarch.actor.unhandled_fault_hook = hook
hosts = attach_to_workers(ca="trust_all_connections", workers=sys.argv[2:])
count = int(sys.argv[1])
echo = hosts.spawn_procs(per_host={"gpus": count}).spawn("echo", Echo)
pids = list(echo.pid.call().get(60).values())
"""
_TIME_CALLS = (
    _PREAMBLE
    + f"""
one = echo.slice(gpus=0).echo if count == 1 else None
times = []
for _ in range({_CALLS}):
    began = time.perf_counter()
    one.call_one(1).get()
    times.append(time.perf_counter() - began)
times.sort()
print(times[len(times) // 2] * 1e6)
"""
)
_TIME_DEATHS = (
    _PREAMBLE
    + """
for pid in pids:
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    print((wait() - began) * 1e3)
"""
)
_TIME_SILENCE = (
    _PREAMBLE
    + """
print("ready", flush=True)
print(wait())
"""
)


def raw(count: int) -> float:
    """Microseconds of a round trip of 64 bytes over loopback TCP, both ends on this core."""
    server = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if pid == 0:
        peer = socket.create_connection(server.getsockname())
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := peer.recv(64):
            peer.send(data)
        os._exit(0)
    here, _ = server.accept()
    here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(count):
        began = time.perf_counter()
        here.send(bytes(64))
        here.recv(64)
        times.append(time.perf_counter() - began)
    here.close()
    os.waitpid(pid, 0)
    return median(times) * 1e6


class Bench:
    """Programs on the hosts of a network."""

    def __init__(self, network: Network, secret: str, **variables: str) -> None:
        self.network = network
        self._variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "runtime"), str(ROOT)]),
            "MONARCH_SECRET_FILE": secret,
            **variables,
        }

    def start(self, host: Host, *arguments: str) -> subprocess.Popen[str]:
        """A Python program on a host."""
        pipe = subprocess.PIPE
        return host.start([sys.executable, *arguments], env=self._variables, stdout=pipe)

    def attach(self, code: str, count: int) -> subprocess.Popen[str]:
        """Serve on all hosts but the first, and run a program there that attaches to them."""
        addresses = []
        for host in self.network.hosts[1:]:
            address = f"tcp://{host.address}:26600"
            served = self.start(host, "-m", "monarch", "serve", "--listen", address)
            assert served.stdout is not None
            served.stdout.readline()
            addresses.append(address)
        return self.start(self.network.hosts[0], "-c", code, str(count), *addresses)


def _numbers(program: subprocess.Popen[str]) -> list[float]:
    out, _ = program.communicate(timeout=120)
    return [float(line) for line in out.split()]


def silence(secret: str, how: str, beat: str) -> float:
    """Seconds from the cut or the stop of a host to the failure."""
    with Network(2) as network:
        bench = Bench(network, secret, MONARCH_HEARTBEAT_INTERVAL=beat)
        program = bench.attach(_TIME_SILENCE, 1)
        assert program.stdout is not None
        program.stdout.readline()
        time.sleep(1.5)  # so that it is idle
        began = time.monotonic()
        if how == "cut":
            network.hosts[1].cut()
        else:
            network.hosts[1].signal(signal.SIGSTOP)
        return _numbers(program)[0] - began


def main() -> None:
    """Measure all of it."""
    lacking = missing()
    if lacking:
        raise SystemExit(lacking)
    found: dict[str, Any] = {"schema": 1}
    with tempfile.TemporaryDirectory() as folder:
        secret = str(Path(folder, "secret"))
        os.close(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600))
        Path(secret).write_bytes(os.urandom(32))
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        found["raw_us"] = raw(20_000)
        for name, variables in (("clear_us", {"MONARCH_INSECURE_PLAINTEXT": "1"}), ("tls_us", {})):
            with Network(2) as network:
                program = Bench(network, secret, **variables).attach(_TIME_CALLS, 1)
                found[name] = _numbers(program)[0]
        os.sched_setaffinity(0, cores)
        with Network(2) as network:
            deaths = _numbers(Bench(network, secret).attach(_TIME_DEATHS, _DEATHS))
        found["death_ms"] = {"median": median(deaths), "most": max(deaths), "count": len(deaths)}
        for how in ("cut", "stop"):
            for beat in ("500ms", "100ms"):
                found[f"{how}_at_{beat}_s"] = silence(secret, how, beat)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
