"""A SLURM cluster on one machine, for tests: its real daemons, in a folder of their own.

Needs root and Debian's slurmctld, slurmd, slurm-client and munge; no systemd, nothing under /etc.
Each node is a slurmd with a name and a port. All daemons are children of a keeper process, which
adopts what they leave behind and kills all of it when the cluster is closed, or its user is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from ci import packages
from ci.rigs import keeper
from ci.rigs.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

TOOLS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged")
CPUS, MEMORY, GPUS = 8, 2000, 8  # of each node; config_overrides lets a small machine claim them
_PREFIX = "127.0.2."  # of the nodes' addresses
_NODE = "CI_SLURM_NODE"  # variable of a node's daemons
_START_SECONDS = 60.0
_CGROUPS_CAN_BE_OFF = Version("23.11")  # and must be where a container mounts none

# All nodes are pinged at once, and again when all have answered or MessageTimeout is over: nodes
# that are well would be down with one that is not, where SlurmdTimeout is not well above that.
_CONF = """\
ClusterName=ci
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
MessageTimeout=5
SlurmdTimeout=12
KillWait=2
MinJobAge=30
JobRequeue=1
GresTypes=gpu
PartitionName=main Nodes={all} Default=YES State=UP
PartitionName=short Nodes={all} MaxTime=1 State=UP
PartitionName=narrow Nodes={all} MaxNodes=1 State=UP
"""
_NODE_CONF = (
    "NodeName={node} NodeHostname={host} NodeAddr={address} Port={port} "
    f"CPUs={CPUS} RealMemory={MEMORY} Gres=gpu:{GPUS}\n"
)


def missing() -> str:
    """Why there can be no cluster here; empty where there can."""
    if sys.platform != "linux":
        return "SLURM's daemons run on Linux"
    lacking = [tool for tool in TOOLS if packages.which(tool) is None]
    if lacking:
        return f"{', '.join(lacking)} not found (Debian: slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "SLURM's daemons need root"


def _version() -> Version:
    done = subprocess.run(
        [packages.which("slurmd") or "slurmd", "-V"], capture_output=True, check=True
    )
    return Version(done.stdout.decode().split()[1])


class Cluster:
    """SLURM daemons with `nodes` nodes, n1 and so on, in `folder`; a context manager.

    Another `prefix` than "n" is one that each node's address begins with as well: "127.0.2.".
    Partitions: main, short (MaxTime of a minute), narrow (MaxNodes 1).
    """

    def __init__(self, folder: Path, nodes: int = 5, prefix: str = "n") -> None:
        self.folder = folder
        self.nodes = [f"{prefix}{number}" for number in range(1, nodes + 1)]
        self._all = f"{prefix}[1-{nodes}]"
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What SLURM's commands need to find this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def __enter__(self) -> Self:
        self._write()
        path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin"
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", keeper.__file__],
            stdin=subprocess.PIPE,
            env={**os.environ, **self.environment, "PATH": path},
            start_new_session=True,
        )
        try:
            self._start_daemons()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._close()

    def run(self, *command: str) -> str:
        """What a command of SLURM's prints.

        Raises:
            subprocess.CalledProcessError: it fails.

        """
        environment = {**os.environ, **self.environment}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout

    def queue(self) -> list[str]:
        """The jobs that SLURM has, each as `ID STATE NODES`."""
        return self.run("squeue", "-h", "-r", "-o", "%i %T %N").splitlines()

    def clear(self, seconds: float = 30.0) -> None:
        """End all jobs; all nodes are idle then."""
        self.run("scancel", "--user=root")
        for node in self.nodes:
            if not self._daemon(node):
                self.start(node)
        self._until_idle(seconds)

    def crash(self, node: str) -> None:
        """End a node as a loss of power would: its daemon and all that runs on it, at once.

        None of them is to act on the end of another. An srun cannot be stopped for that: it is
        continued when its parent ends, with SIGHUP. Its child, which ends the step when srun is
        gone, goes before it.
        """
        found: set[int] = set()
        sruns: list[int] = []
        while more := self._running(node) - found:
            found |= more
            sruns += [pid for pid in more if _name(pid) == "srun"]
            for pid in more.difference(sruns):
                keeper.kill(pid, signal.SIGSTOP)
        sruns.sort(key=lambda pid: len(keeper.descendants(pid)))
        for pid in [*sruns, *found.difference(sruns)]:
            keeper.kill(pid, signal.SIGKILL)

    def _running(self, node: str) -> set[int]:
        """The daemon of a node, its steps and all that they started.

        The daemon of a step is a child of the node's, or, in newer SLURM, nobody's and without
        variables; what it started has some that tell.
        """
        above = {keeper.parent(pid) for pid in self._with("SLURMD_NODENAME", node)}
        tops = {*self._daemon(node), *(pid for pid in above if _name(pid) == "slurmstepd")}
        return {pid for one in tops for pid in [one, *keeper.descendants(one)]}

    def start(self, node: str) -> None:
        """Start the daemon of a node that is not there."""
        self._run_daemon(self._command(node), {_NODE: node})

    def _command(self, node: str) -> list[str]:
        return ["slurmd", "-D", "-N", node]

    def _daemon(self, node: str) -> list[int]:
        return self._with(_NODE, node)

    def _with(self, variable: str, node: str) -> list[int]:
        """Processes of this cluster, and of no other one, in which a variable names the node."""
        wanted = {variable: node, **self.environment}.items()
        return [pid for pid, environment in environments() if wanted <= environment.items()]

    def _write(self) -> None:
        for name in ("state", "dev", *(f"spool/{node}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True)
        host = socket.gethostname().partition(".")[0]
        ports = free_ports(1 + len(self.nodes))
        text = _CONF.format(folder=self.folder, host=host, port=ports[0], all=self._all)
        for number, (node, port) in enumerate(zip(self.nodes, ports[1:], strict=True), 1):
            address = f"{_PREFIX}{number}"  # all are loopback, and each is one node's
            line = _NODE_CONF.format(node=node, host=host, port=port, address=address)
            text = text.replace("PartitionName=main", f"{line}PartitionName=main")
        (self.folder / "slurm.conf").write_text(text, encoding="utf-8")
        if _version() >= _CGROUPS_CAN_BE_OFF:
            (self.folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n", encoding="ascii")
        for number in range(GPUS):  # SLURM wants device nodes: each is a /dev/null
            os.mknod(self.folder / f"dev/nvidia{number}", 0o20666, os.makedev(1, 3))
        (self.folder / "gres.conf").write_text(
            f"NodeName={self._all} Name=gpu File={self.folder}/dev/nvidia[0-{GPUS - 1}]\n",
            encoding="utf-8",
        )
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))

    def _start_daemons(self) -> None:
        folder = self.folder
        self._run_daemon(
            [
                *("munged", "--foreground", "--force", f"--key-file={folder}/munge.key"),
                *(f"--socket={folder}/munge.sock", f"--pid-file={folder}/munged.pid"),
                *(f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"),
            ]
        )
        self._until((folder / "munge.sock").exists, "munged")
        self._start_accounting()
        self._run_daemon(["slurmctld", "-D", "-c"])
        for node in self.nodes:
            self.start(node)
        self._until_idle(_START_SECONDS)

    def _start_accounting(self) -> None:
        """Nothing is accounted, and nobody limited; see `ci.slurm_accounts`."""

    def _run_daemon(self, command: list[str], variables: dict[str, str] | None = None) -> None:
        running = self._keeper
        if running is None or running.stdin is None:
            raise RuntimeError("the cluster is not open")
        running.stdin.write(json.dumps([command, variables or {}]).encode() + b"\n")
        running.stdin.flush()

    def _until_idle(self, seconds: float) -> None:
        def idle() -> bool:
            with contextlib.suppress(subprocess.CalledProcessError):
                states = self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").split("\n")[:-1]
                return sorted(states) == sorted(f"{node} idle" for node in self.nodes)
            return False

        self._until(idle, "idle nodes", seconds)

    def _until(self, done: Callable[[], bool], what: str, seconds: float = _START_SECONDS) -> None:
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                logs = sorted(self.folder.glob("slurm*.log"))
                ends = [f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in logs]
                raise TimeoutError("\n".join([f"no {what} after {seconds:.0f} s", *ends]))
            time.sleep(0.05)

    def _close(self) -> None:
        if self._keeper is not None:
            self._keeper.communicate()
            self._keeper = None


def _name(pid: int) -> str:
    """What the kernel calls a process; nothing where it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def environments() -> list[tuple[int, dict[str, str]]]:
    """Every process that can be looked at, with its variables."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            pairs = path.read_bytes().decode(errors="replace").split("\0")
            variables = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
            found.append((int(path.parent.name), variables))
    return found
