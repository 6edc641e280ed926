"""One host that is reached by SSH: its program is started, kept, looked at and ended there."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monarch._link import secret
from monarch._proc.interpreter import command
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MODULE = "monarch._job.ssh.host"
_CONNECT = 10  # seconds for a connection to be there
_LINES = 20  # of what a host's program says that are kept
_OPTIONS = (
    *("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT}"),
    *("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"),
)


@dataclass(frozen=True, slots=True)
class Running:
    """A host's program: `started` tells it from a later process with the same id."""

    host: str
    address: str
    pid: int
    started: int


def ask(
    host: str, ssh: Sequence[str], python: str | None, arguments: Sequence[str]
) -> subprocess.Popen[bytes]:
    """Run a host's program with these arguments.

    Raises:
        JobError: there is no ssh here.

    """
    if host.startswith("-"):
        raise ValueError(f"{host!r} is no host")
    program = [python, "-m", _MODULE, *arguments] if python else command(_MODULE, None, arguments)
    try:
        return subprocess.Popen(
            ["ssh", *_OPTIONS, *ssh, host, shlex.join(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for this program alone
        )
    except FileNotFoundError:
        raise JobError(
            "ssh is not on this machine's PATH; an SSHJob uses the client of OpenSSH (Debian: "
            "apt-get install openssh-client)"
        ) from None


class Connection:
    """A host's program that runs as long as this connection to it."""

    def __init__(self, host: str, program: subprocess.Popen[bytes]) -> None:
        self.host = host
        self._program = program
        self._said: deque[str] = deque(maxlen=_LINES)
        self._answers: list[str] = []
        self._changed = threading.Condition()
        self._open = True
        assert program.stdin is not None  # noqa: S101 - a pipe
        self._input = program.stdin
        self._tell(secret.current().give().hex())
        self._listener = threading.Thread(target=self._listen, daemon=True, name="monarch-ssh")
        self._listener.start()
        self._reader = threading.Thread(target=self._read, daemon=True, name="monarch-ssh")
        self._reader.start()

    def answered(self, seconds: float) -> bool:
        """Whether the host's program has said something or ended, within this time."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._answers) or not self._open, seconds)

    def running(self, seconds: float) -> Running:
        """Where the host listens, once it does.

        Raises:
            JobError: it cannot be reached, its program ends, or takes longer.

        """
        line = self._answer(0, seconds)
        try:
            return Running(host=self.host, **json.loads(line))
        except (ValueError, TypeError):
            raise JobError(f"host {self.host} answers {line[:200]!r}, not as a host does") from None

    def keep(self) -> None:
        """Let the host's program live without this connection."""
        self._tell("keep")
        self._answer(1, _CONNECT)
        self._program.kill()  # the connection's end on this side; the host's program stays
        self._finish()

    def hang_up(self) -> None:
        """Ask the host's program to end, without waiting."""
        with contextlib.suppress(OSError):
            self._input.close()

    def close(self) -> None:
        """Wait for what `hang_up` asked for, as long as it takes in order."""
        try:
            self._program.wait(_CONNECT)
        except subprocess.TimeoutExpired:
            self._program.kill()
        self._finish()

    def _finish(self) -> None:
        self._program.wait()
        self._reader.join()
        for pipe in (self._input, self._program.stdout, self._program.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError):  # what it died of is on its other outputs
            self._input.write(f"{line}\n".encode())
            self._input.flush()

    def _answer(self, index: int, seconds: float) -> str:
        with self._changed:
            self._changed.wait_for(lambda: len(self._answers) > index or not self._open, seconds)
            if len(self._answers) > index:
                return self._answers[index]
        said = "\n".join(self._said)
        if self._open:
            raise JobError(f"host {self.host} does not serve after {seconds:g} s; it says:\n{said}")
        status = self._program.wait()
        why = "ssh cannot reach it" if status == 255 else f"its program ended with status {status}"
        raise JobError(f"host {self.host}: {why}:\n{said}")

    def _read(self) -> None:
        assert self._program.stdout is not None  # noqa: S101 - a pipe
        with contextlib.suppress(OSError, ValueError):
            for line in self._program.stdout:
                with self._changed:
                    self._answers.append(line.decode(errors="replace").strip())
                    self._changed.notify_all()
        self._listener.join()
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _listen(self) -> None:
        assert self._program.stderr is not None  # noqa: S101 - a pipe
        with contextlib.suppress(OSError, ValueError):
            for line in self._program.stderr:
                self._said.append(line.decode(errors="replace").rstrip())
