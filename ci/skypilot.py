"""SkyPilot itself with hosts to give, for tests: its server here, its cloud a SLURM cluster by SSH.

All of it is real (SkyPilot's client, server and provisioner, OpenSSH, SLURM's daemons) and on
this machine, in a folder of its own: the users' home, on both sides, is below that. SkyPilot
alone looks up the home of who logs in, and what it leaves there is taken away at the end. One
thing is not as on a cloud: SkyPilot's nodes fetch `uv` from its authors' server and Python by it.
Here they get the `uv` and the Python of this environment, as tests use package registries alone.
SkyPilot tells the nodes of a cluster apart by what their own names resolve to, so that each has a
name of its own.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ci import slurm, sshd

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

CLOUD = "rig"  # what SkyPilot calls the cluster
_START_SECONDS = 300
_END_SECONDS = 20.0
_SOCKETS = Path("/tmp")  # noqa: S108 - SkyPilot's choice: sky_ssh_*, whatever the home is
_OF_UV = ("UV_CACHE_DIR", "UV_INDEX_URL", "SSL_CERT_FILE")  # how it reaches packages here

_SOURCED = b"\nsource ~/.sky_ssh_rc\n"  # how its file is added to .bashrc

_NAMED = 'hostname "$0" && exec "$@"'

_SSH = """\
Host {cloud}
  HostName 127.0.0.1
  Port {port}
  User root
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
"""
_CURL = """\
#!/bin/sh
case "$*" in
*astral.sh*)
  echo 'mkdir -p "$UV_INSTALL_DIR" && cp {folder}/bin/uv-here "$UV_INSTALL_DIR/uv"' ;;
*) exec /usr/bin/curl "$@" ;;
esac
"""
_UV = """\
#!/bin/bash
words=()
for word in "$@"; do [ "$word" = 3.10 ] && word={python}; words+=("$word"); done
export UV_PYTHON_DOWNLOADS=never {variables}
exec {uv} "${{words[@]}}"
"""


def missing() -> str:
    """Why there can be no such rig here; empty where there can."""
    if shutil.which("rsync") is None:
        return "rsync not found (Debian: rsync)"
    if not (Path(sys.executable).parent / "uv").exists():
        return "uv not found (PyPI: uv)"
    return slurm.missing() or sshd.missing()


class _Named(slurm.Cluster):
    """As `slurm.Cluster`; the name of a node's host is the node's, and resolves to its address."""

    def __init__(self, folder: Path, nodes: int) -> None:
        super().__init__(folder, nodes, "127.0.2.")

    def _command(self, node: str) -> list[str]:
        return ["unshare", "--uts", "sh", "-c", _NAMED, node, *super()._command(node)]


class Sky:
    """SkyPilot with a cloud that has `nodes` nodes; a context manager."""

    def __init__(self, folder: Path, nodes: int = 3) -> None:
        self.folder = folder
        self.cluster = _Named(folder / "slurm", nodes)
        self._sshd = sshd.Server(folder / "sshd", self._of_logins())
        self._others = set(_SOCKETS.glob("sky_ssh_*"))
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
        self._home = {home / name: _content(home / name) for name in (".bashrc", ".sky_ssh_rc")}

    @property
    def environment(self) -> dict[str, str]:
        """What SkyPilot's client needs to find this server, and nothing of the user's."""
        return {
            "HOME": str(self.folder / "home"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin",
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        }

    def run(self, *arguments: str, seconds: float = _START_SECONDS) -> str:
        """What a command of SkyPilot's prints.

        Raises:
            subprocess.CalledProcessError: it fails.

        """
        done = subprocess.run(
            [str(Path(sys.executable).parent / "sky"), *arguments],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=seconds,
        )
        return done.stdout

    def __enter__(self) -> Self:
        self._write()
        self.cluster.__enter__()
        try:
            self._sshd.__enter__()
            text = _SSH.format(cloud=CLOUD, port=self._sshd.port, folder=self._sshd.folder)
            (self.folder / "home/.slurm/config").write_text(text, encoding="ascii")
            self.run("check", "slurm")  # starts the server
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            self.run("api", "stop")
        finally:
            with contextlib.ExitStack() as ends:
                ends.callback(self._tidy)
                ends.push(self.cluster)
                ends.push(self._sshd)
                self._end_connections()

    def _end_connections(self) -> None:
        """End the connections by ssh that SkyPilot keeps for later, with their sockets.

        Raises:
            TimeoutError: one of them goes on.

        """
        folders = set(_SOCKETS.glob("sky_ssh_*")) - self._others
        asked = []
        for path in (path for folder in folders for path in folder.rglob("*") if path.is_socket()):
            command = ["ssh", "-O", "exit", "-o", f"ControlPath={path}", CLOUD]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                asked.append(path)  # of others the process has ended by itself
        end = time.monotonic() + _END_SECONDS
        while left := [path for path in asked if path.exists()]:
            if time.monotonic() > end:
                raise TimeoutError(f"connections by ssh do not end: {', '.join(map(str, left))}")
            time.sleep(0.1)
        for folder in folders:
            shutil.rmtree(folder)

    def _tidy(self) -> None:
        """Take away what SkyPilot wrote into the home of who logs in."""
        for path, before in self._home.items():
            now = _content(path)
            if before is None:
                path.unlink(missing_ok=True)
            elif now == before + _SOURCED:
                path.write_bytes(before)

    def _of_logins(self) -> dict[str, str]:
        """The variables of who logs in to the cluster."""
        return {**self.cluster.environment, "HOME": str(self.folder / "there")}

    def _write(self) -> None:
        for name in ("home/.slurm", "there", "bin", "cache"):
            (self.folder / name).mkdir(parents=True)
        python = sysconfig.get_python_version()
        uv = Path(sys.executable).parent / "uv"
        own = {name: os.environ[name] for name in _OF_UV if name in os.environ}
        given = {"UV_CACHE_DIR": str(self.folder / "cache"), **own}
        variables = shlex.join(f"{name}={value}" for name, value in given.items())
        for name, text in (
            ("curl", _CURL.format(folder=self.folder)),
            ("uv-here", _UV.format(python=python, variables=variables, uv=uv)),
        ):
            path = self.folder / "bin" / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        for name in (".bash_profile", ".bashrc"):
            text = f'export PATH="{self.folder}/bin:$PATH:/usr/sbin"\n'
            (self.folder / "there" / name).write_text(text, encoding="utf-8")


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
