"""The peers: how each is started, kept going as its users would, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ci.rigs.namespaces import Host

HERE = Path(__file__).resolve().parent
EVERY = 20  # steps between two checkpoints of torchrun: one or two seconds of work
TIMEOUT = 30  # seconds until a collective gives up, as in elastic_ddp
_PORT = 29510
_SERVICE = 26600
_PRELOAD = "torch.distributed,torch._dynamo"
_END = 10.0  # seconds that what was killed has to be gone
# Programs ask for their host's name to tell others where they are.
_NAMED = ("unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"')
_LIGHTHOUSE = """
import sys, time
from torchft._torchft import LighthouseServer
server = LighthouseServer(sys.argv[1], 1, join_timeout_ms=10000, quorum_tick_ms=100)
time.sleep(1e6)
"""
_STORE = """
import sys, time
from torch.distributed import TCPStore
store = TCPStore(sys.argv[1], int(sys.argv[2]), is_master=True, wait_for_workers=False)
time.sleep(1e6)
"""


class Peer:
    """One run of one peer in a folder, where its ranks tell of themselves.

    With `hosts`, the first is for what belongs to no rank, those after it have one rank each, and
    what is left stands by; without, all is on this machine.
    """

    name: str

    def __init__(
        self,
        python: Path,
        variables: Mapping[str, str],
        folder: Path,
        ranks: int,
        hosts: Sequence[Host] = (),
    ) -> None:
        self._python = str(python)
        self._variables = {**os.environ, **variables, "OMP_NUM_THREADS": "1"}
        if hosts:
            self._variables["GLOO_SOCKET_IFNAME"] = "eth0"
        self._log: TextIO = (folder / "log").open("a", encoding="utf-8")
        self._all: list[subprocess.Popen[bytes]] = []
        self._kept: list[tuple[subprocess.Popen[bytes], Callable[[], subprocess.Popen[bytes]]]] = []
        self.folder = folder
        self.ranks = ranks
        self.hosts = hosts
        self.begin()

    def begin(self) -> None:
        """Start it."""
        raise NotImplementedError

    def tend(self) -> None:
        """Look after it, several times a second: some of it starts again when it has ended."""
        for place, (started, again) in enumerate(self._kept):
            if started.poll() is not None:
                self._all.remove(started)
                self._kept[place] = again(), again
        if any(each.poll() is not None for each in self._all):
            text = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
            raise RuntimeError(f"{self.name} ended:\n{text[-2000:]}")

    def address(self, index: int) -> str:
        """Where a host is reached."""
        return self.hosts[index].address if self.hosts else "127.0.0.1"

    def start(self, index: int, *arguments: object) -> subprocess.Popen[bytes]:
        """Start a program of its environment on a host."""
        command = [self._python, *map(str, arguments)]
        if self.hosts:
            host = self.hosts[index]
            command = host.command([*_NAMED, host.address, *command])
        started = subprocess.Popen(
            command,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._all.append(started)
        return started

    def keep(self, index: int, *arguments: object) -> None:
        """Start a program, and again whenever it has ended."""

        def again() -> subprocess.Popen[bytes]:
            return self.start(index, *arguments)

        self._kept.append((again(), again))

    def pid(self, rank: int) -> int | None:
        """The process that is this rank now."""
        try:
            return int((self.folder / f"pid-{rank}").read_text(encoding="ascii"))
        except FileNotFoundError:
            return None

    def send(self, rank: int, number: signal.Signals) -> int | None:
        """Send a rank a signal; its process, None where there is none."""
        pid = self.pid(rank)
        try:
            if pid is not None:
                os.kill(pid, number)
        except ProcessLookupError:
            return None
        return pid

    def cut(self, rank: int) -> int | None:
        """Cut the link of a rank's host; its process, None where there is none."""
        pid = self.pid(rank)
        for host in self.hosts:
            if pid in host.pids():
                host.cut()
                return pid
        return None

    def end(self) -> None:
        """Kill all of it."""
        for each in self._all:
            if each.poll() is None:
                os.killpg(each.pid, signal.SIGKILL)
        for each in self._all:
            each.wait()
        until = time.monotonic() + _END
        for rank in range(self.ranks):  # of sessions of their own
            while self.send(rank, signal.SIGKILL) is not None and time.monotonic() < until:
                time.sleep(0.05)
        self._log.close()


class Ours(Peer):
    """`examples/elastic_ddp.py`."""

    name = "monarch"

    def begin(self) -> None:
        """Start the program, which starts its ranks; or host agents first, for ranks and spares."""
        found = [
            self._variables.get("PYTHONPATH", ""),
            str(HERE),
            str(HERE.parents[1] / "examples"),
        ]
        self._variables["PYTHONPATH"] = os.pathsep.join(filter(None, found))
        self._variables["GOODPUT_FOLDER"] = str(self.folder)
        workers = []
        if self.hosts:
            secret = self.folder / "secret"
            secret.touch(0o600)
            secret.write_bytes(os.urandom(32))
            self._variables["MONARCH_SECRET_FILE"] = str(secret)
            self._variables["MONARCH_PRELOAD_MODULES"] = _PRELOAD
            for index in range(1, len(self.hosts)):
                workers.append(f"tcp://{self.address(index)}:{_SERVICE}")
                self.start(index, "-m", "monarch", "serve", "--listen", workers[-1])
        self.start(0, HERE / "ours.py", self.folder, self.ranks, *workers)


class Torchrun(Peer):
    """`torchrun`, which starts all ranks again when one is lost, from the last checkpoint."""

    name = "torchrun"

    def begin(self) -> None:
        """Start the launcher; or a launcher on each host, and the store by which they meet."""
        script = [HERE / "torchrun_rank.py", self.folder, EVERY, TIMEOUT]
        restarts = "--max-restarts=10000"
        run = ("-m", "torch.distributed.run", restarts)
        if not self.hosts:
            self.start(0, *run, "--standalone", f"--nproc-per-node={self.ranks}", *script)
            return
        self.start(0, "-c", _STORE, self.address(0), _PORT)
        meet = [
            *(f"--nnodes={self.ranks}", "--nproc-per-node=1", "--rdzv-backend=c10d"),
            *(f"--rdzv-endpoint={self.address(0)}:{_PORT}", "--rdzv-conf=is_host=false"),
        ]
        for index in range(1, self.ranks + 1):
            self.keep(index, *run, *meet, f"--local-addr={self.address(index)}", *script)


class Torchft(Peer):
    """torchft: each rank a replica of its own, started again as soon as it has ended."""

    name = "torchft"

    def begin(self) -> None:
        """Start the lighthouse with the settings of torchft's README, and the replicas."""
        self.start(0, "-c", _LIGHTHOUSE, f"{self.address(0)}:{_PORT}")
        told = f"http://{self.address(0)}:{_PORT}"
        for rank in range(self.ranks):
            index = rank + 1 if self.hosts else 0
            own = self.address(index)
            self.keep(index, HERE / "torchft_rank.py", self.folder, rank, told, own, TIMEOUT)


PEERS: list[type[Peer]] = [Ours, Torchrun, Torchft]
