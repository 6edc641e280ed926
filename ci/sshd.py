"""An OpenSSH server on loopback, for tests: own keys, own port, nothing under /etc is touched."""

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
    from types import TracebackType
    from typing import Self

_START_SECONDS = 20.0
_CONF = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile {folder}/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin yes
MaxStartups 100
AcceptEnv PYTHONPATH
Subsystem sftp internal-sftp
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

    Who logs in has `variables`.
    """

    def __init__(self, folder: Path, variables: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.port = 0
        self._variables = variables or {}
        self._daemon: subprocess.Popen[bytes] | None = None

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
        for name, text in (("sshd_config", _CONF), ("ssh_config", _CLIENT)):
            made = text.format(folder=folder, port=self.port)
            if name == "sshd_config" and self._variables:
                pairs = (f'"{key}={value}"' for key, value in self._variables.items())
                made += f"SetEnv {' '.join(pairs)}\n"
            (folder / name).write_text(made, encoding="utf-8")
        Path("/run/sshd").mkdir(exist_ok=True)  # where it separates privileges
        with (folder / "log").open("wb") as log:
            self._daemon = subprocess.Popen(
                [str(packages.which("sshd")), "-D", "-e", "-f", str(folder / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        end = time.monotonic() + _START_SECONDS
        while not (folder / "sshd.pid").exists():
            if time.monotonic() > end or self._daemon.poll() is not None:
                raise TimeoutError((folder / "log").read_text(errors="replace"))
            time.sleep(0.02)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._daemon is not None:
            self._daemon.terminate()
            self._daemon.wait()
