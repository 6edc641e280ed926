"""Hosts on one machine: network namespaces on one switch, with links that can be cut.

Each host has an interface of its own, IPv4 and IPv6, and its own loopback and abstract Unix
sockets; files, users and processes are the machine's. The switch is a namespace as well, without a
leg in the machine's network: nothing leaves it. Needs root, `ip` and `nsenter`; cuts need `nft`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CAPABILITIES = 1 << 12 | 1 << 21  # CAP_NET_ADMIN, CAP_SYS_ADMIN
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_ROOT = Path(__file__).resolve().parents[2]
# SIOCETHTOOL with ETHTOOL_STXCSUM 0 and ETHTOOL_SGSO 0, for eth0.
_NO_OFFLOAD = """
import array, fcntl, socket, struct
for command in (0x17, 0x24):
    value = array.array("B", struct.pack("II", command, 0))
    request = struct.pack("16sP8x", b"eth0", value.buffer_info()[0])
    fcntl.ioctl(socket.socket(), 0x8946, request)
"""
_numbers = count()


def missing() -> str:
    """What the machine lacks for this rig; empty where it has all of it."""
    if os.geteuid() != 0:
        return "network namespaces are made by root"
    status = Path("/proc/self/status").read_text(encoding="ascii")
    allowed = int(status.partition("CapEff:")[2].split()[0], 16)
    if allowed & _CAPABILITIES != _CAPABILITIES:
        return "this root lacks CAP_NET_ADMIN or CAP_SYS_ADMIN, as in containers"
    tools = [name for name in ("ip", "nsenter", "nft") if shutil.which(name) is None]
    return f"not installed: {', '.join(tools)} (packages iproute2, nftables)" if tools else ""


class Host:
    """One host.

    Attributes:
        name: of its namespace.
        address: its IPv4 address.
        address6: its IPv6 address.

    """

    def __init__(self, network: Network, index: int) -> None:
        self._network = network
        self.name = f"{network.name}h{index}"
        self.port = f"p{index}"  # its end on the switch
        self.address = f"10.77.0.{index + 1}"
        self.address6 = f"fd77::{index + 1}"

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command that runs another one on this host, as the same process."""
        return ["nsenter", f"--net=/run/netns/{self.name}", "--", *arguments]

    def start(self, arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a program on this host, as `subprocess.Popen` does, with text streams."""
        return subprocess.Popen(self.command(arguments), text=True, **options)

    def connect(self, address: tuple[str, int]) -> socket.socket:
        """A connection that is made on this host: a thread can be in a namespace."""
        found: list[socket.socket | OSError] = []

        def make() -> None:
            namespace = os.open(f"/run/netns/{self.name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                done = ctypes.CDLL(None, use_errno=True).setns(namespace, _NEW_NETWORK)
                found.append(
                    OSError(ctypes.get_errno(), "setns")
                    if done
                    else socket.create_connection(address, 5.0)
                )
            except OSError as error:
                found.append(error)
            finally:
                os.close(namespace)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if isinstance(found[0], OSError):
            raise found[0]
        return found[0]

    def pids(self) -> list[int]:
        """Every process that runs on this host."""
        found = _run("ip", "netns", "pids", self.name)
        return [int(word) for word in found.split()]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of this host, again until nobody new is found."""
        told: set[int] = set()
        while new := set(self.pids()) - told:
            for pid in new:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
            told |= new

    def cut(self) -> None:
        """Drop every packet from and to this host; nobody is told."""
        self._network.drop(f'iifname "{self.port}" drop', f'oifname "{self.port}" drop')

    def cut_from(self, other: Host) -> None:
        """Drop what the other host sends to this one; the way back stays open."""
        self._network.drop(f'iifname "{other.port}" oifname "{self.port}" drop')

    def unplug(self) -> None:
        """Take the link down, which the switch notices and this host does not."""
        _run("ip", "-n", self._network.switch, "link", "set", self.port, "down")

    def weather(self, seed: int, **shares: float) -> None:
        """Make the network to this host a bad one for good, as `ci.rigs.weather` does."""
        # Packets with checksums in them, none larger than the link takes: as on a wire.
        _run(*self.command([sys.executable, "-c", _NO_OFFLOAD]))
        self._network.carry(self.port, seed, shares)


class Network:
    """`hosts` hosts on one switch, until `close`; a context manager."""

    def __init__(self, hosts: int) -> None:
        self.name = f"mon{os.getpid()}x{next(_numbers)}"
        self.switch = f"{self.name}sw"
        self.hosts = [Host(self, index) for index in range(hosts)]
        self._carriers: list[subprocess.Popen[str]] = []
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def drop(self, *rules: str) -> None:
        """Add rules to what the switch forwards."""
        for rule in rules:
            _run(*self._on_switch("nft", "add", "rule", "bridge", "cuts", "forward", rule))

    def heal(self) -> None:
        """Take back every cut and plug every host in again."""
        _run(*self._on_switch("nft", "flush", "chain", "bridge", "cuts", "forward"))
        for host in self.hosts:
            _run("ip", "-n", self.switch, "link", "set", host.port, "up")

    def carry(self, port: str, seed: int, shares: Mapping[str, float]) -> None:
        """Put a program between a port and the others; see `Host.weather`."""
        pairs = [f"{name}={value}" for name, value in shares.items()]
        command = [sys.executable, "-m", "ci.rigs.weather", port, str(seed), *pairs]
        carrier = subprocess.Popen(
            self._on_switch(*command), text=True, stdout=subprocess.PIPE, cwd=_ROOT
        )
        self._carriers.append(carrier)
        if carrier.stdout is None or carrier.stdout.readline() != "begins\n":
            raise RuntimeError(f"nothing carries packets to {port}")

    def close(self) -> None:
        """Kill what runs on the hosts, and remove them."""
        for carrier in self._carriers:
            carrier.kill()
            carrier.communicate()
        self._carriers.clear()
        folder = Path("/run/netns")
        present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        for host in self.hosts:
            if host.name in present:
                host.signal(signal.SIGKILL)
                _run("ip", "netns", "del", host.name)
        if self.switch in present:
            _run("ip", "netns", "del", self.switch)

    def _make(self) -> None:
        switch = self.switch
        _run("ip", "netns", "add", switch)
        # Without a spanning tree and its delays, and without multicast snooping, which loses the
        # neighbour discovery of IPv6 on a bridge that nobody queries.
        _run("ip", "-n", switch, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        _run("ip", "-n", switch, "link", "set", "br0", "up")
        _run(*self._on_switch("nft", "add", "table", "bridge", "cuts"))
        chain = "{ type filter hook forward priority 0; }"
        _run(*self._on_switch("nft", "add", "chain", "bridge", "cuts", "forward", chain))
        for host in self.hosts:
            name, port = host.name, host.port
            _run("ip", "netns", "add", name)
            _run(
                *("ip", "-n", switch, "link", "add", port, "type", "veth"),
                *("peer", "name", "eth0", "netns", name),
            )
            _run("ip", "-n", switch, "link", "set", port, "master", "br0", "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
            _run("ip", "-n", name, "addr", "add", f"{host.address}/24", "dev", "eth0")
            # nodad: the address can be used at once.
            _run("ip", "-n", name, "addr", "add", f"{host.address6}/64", "dev", "eth0", "nodad")
            _run("ip", "-n", name, "link", "set", "eth0", "up")

    def _on_switch(self, *arguments: str) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{self.switch}", "--", *arguments]


def _run(*arguments: str) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
