"""OpenSSH servers for tests, on loopback or on hosts of a network: own keys, nothing under /etc."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ci import packages
from ci.rigs.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from ci.rigs.namespaces import Host

_START_SECONDS = 20.0
_CONF = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile {folder}/sshd-{address}.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin yes
MaxStartups 100
AcceptEnv PYTHONPATH
Subsystem sftp internal-sftp
"""
_CLIENT_OF = """\
Host {name}
  HostName {address}
"""
_CLIENT = """\
Host *
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking accept-new
  SendEnv PYTHONPATH
"""


def missing() -> str:
    """Why there can be no server here; empty where there can."""
    lacking = [tool for tool in ("sshd", "ssh", "ssh-keygen") if packages.which(tool) is None]
    if lacking:
        return f"{', '.join(lacking)} not found (Debian: openssh-server openssh-client)"
    return "" if sys.platform == "linux" and os.geteuid() == 0 else "sshd needs root, on Linux"


class Server:
    """A server that every host name leads to, with `options` for ssh; a context manager.

    With `hosts`, by the names that lead there, one on each of these. Who logs in has `variables`.
    """

    def __init__(
        self,
        folder: Path,
        variables: dict[str, str] | None = None,
        hosts: Mapping[str, Host] | None = None,
    ) -> None:
        self.folder = folder
        self.port = 0
        self._variables = variables or {}
        self._hosts = hosts or {}
        self._daemons: list[subprocess.Popen[bytes]] = []

    @property
    def options(self) -> list[str]:
        """Options of ssh that lead any host name here."""
        return ["-F", str(self.folder / "ssh_config")]

    def __enter__(self) -> Self:
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("host_key", "user_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True)
        (self.port,) = free_ports(1)
        named = [
            _CLIENT_OF.format(name=name, address=host.address) for name, host in self._hosts.items()
        ]
        client = "".join([*named, _CLIENT.format(folder=folder, port=self.port)])
        (folder / "ssh_config").write_text(client, encoding="utf-8")
        Path("/run/sshd").mkdir(exist_ok=True)  # where it separates privileges
        try:
            for host in self._hosts.values() or [None]:
                self._start(host)
        except BaseException:
            self._close()
            raise
        return self

    def _start(self, host: Host | None) -> None:
        address = "127.0.0.1" if host is None else host.address
        text = _CONF.format(folder=self.folder, port=self.port, address=address)
        if self._variables:
            pairs = (f'"{key}={value}"' for key, value in self._variables.items())
            text += f"SetEnv {' '.join(pairs)}\n"
        conf, log, pid = (self.folder / f"sshd-{address}.{end}" for end in ("conf", "log", "pid"))
        conf.write_text(text, encoding="utf-8")
        command = [str(packages.which("sshd")), "-D", "-e", "-f", str(conf)]
        with log.open("wb") as said:
            daemon = subprocess.Popen(
                command if host is None else host.command(command),
                stdin=subprocess.DEVNULL,
                stderr=said,
            )
        self._daemons.append(daemon)
        end = time.monotonic() + _START_SECONDS
        while not pid.exists():
            if time.monotonic() > end or daemon.poll() is not None:
                raise TimeoutError(log.read_text(errors="replace"))
            time.sleep(0.02)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        while self._daemons:
            daemon = self._daemons.pop()
            daemon.terminate()
            daemon.wait()
