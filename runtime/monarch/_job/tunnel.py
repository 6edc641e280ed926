"""Tunnels by OpenSSH to hosts that this machine cannot reach itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from monarch._job.attach import lead
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

_SECONDS = 30.0  # for the tunnels to be there
_UNTIL = "cat"  # it ends with its input, and so with this program however that ends
_OPTIONS = (
    *("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ControlPath=none"),
    *("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"),
    *("-o", "ExitOnForwardFailure=yes", "-o", "StreamLocalBindMask=0177"),
)


class Tunnels:
    """Ways to addresses by machines that `ssh` reaches, as long as this program lives.

    Each is a Unix socket in a folder of this user's alone.
    """

    def __init__(self) -> None:
        self._folder: str | None = None
        self._programs: list[subprocess.Popen[bytes]] = []
        self._ways: dict[str, subprocess.Popen[bytes]] = {}  # by URL, what leads there
        self._made = 0

    def open(self, gateway: str, targets: Mapping[str, str]) -> None:
        """Lead links to each URL through `gateway`, where its target (`host:port`) is reached.

        Those that have a tunnel keep it.

        Args:
            gateway: what `ssh` takes.
            targets: by the URL of an address, what the gateway connects to.

        Raises:
            JobError: there is no ssh here, or it cannot reach the gateway; with what it said.

        """
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="monarch-ssh-")
        lacking = [url for url in targets if not self._leads(url)]
        if not lacking:
            return
        ways = {url: f"{self._folder}/{self._made + i}" for i, url in enumerate(lacking)}
        self._made += len(lacking)
        forwards = [word for url in lacking for word in ("-L", f"{ways[url]}:{targets[url]}")]
        with tempfile.TemporaryFile() as said:
            try:
                program = subprocess.Popen(
                    ["ssh", *_OPTIONS, *forwards, "--", gateway, _UNTIL],
                    stdin=subprocess.PIPE,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,  # Ctrl-C is for this program alone
                )
            except FileNotFoundError:
                raise JobError(
                    "ssh is not on this machine's PATH, and leads to the hosts (Debian: apt-get "
                    "install openssh-client)"
                ) from None
            try:
                _wait(program, list(ways.values()), gateway, said)
            except BaseException:
                _end([program])
                raise
        self._programs.append(program)
        for url, path in ways.items():
            self._ways[url] = program
            lead(url, path)

    def _leads(self, url: str) -> bool:
        return url in self._ways and self._ways[url].poll() is None

    def close(self) -> None:
        """End all tunnels."""
        ways, self._ways = self._ways, {}
        for url in ways:
            lead(url, None)
        programs, self._programs = self._programs, []
        _end(programs)
        if self._folder is not None:
            shutil.rmtree(Path(self._folder), ignore_errors=True)
            self._folder = None


def _wait(
    program: subprocess.Popen[bytes], paths: list[str], gateway: str, said: IO[bytes]
) -> None:
    """Wait until a program has made all its tunnels; `said` has what it prints."""
    end = time.monotonic() + _SECONDS
    while not all(os.path.exists(path) for path in paths):  # noqa: PTH110 - of a list
        late = time.monotonic() > end
        if program.poll() is not None or late:
            said.seek(0)
            text = said.read()[-1000:].decode(errors="replace").strip()
            why = f"is not there after {_SECONDS:g} s" if late else "cannot be made"
            raise JobError(f"the tunnel by ssh to {gateway} {why}:\n{text}")
        time.sleep(0.02)


def _end(programs: list[subprocess.Popen[bytes]]) -> None:
    for program in programs:
        program.terminate()
        if program.stdin is not None:
            program.stdin.close()
    for program in programs:
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(5.0)
        program.kill()
        program.wait()
