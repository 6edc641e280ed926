"""SkyPilot's client, as this program uses it: `calls` in a process of its own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

from monarch._proc.interpreter import command
from monarch.errors import JobError

if TYPE_CHECKING:
    from typing import IO

_MODULE = "monarch._job.sky.calls"
_SECONDS = 600.0  # that a call may take; ending a cluster takes minutes
_TAIL = 1500  # bytes of what SkyPilot printed that an error shows
_OURS = ("MONARCH_SECRET_FD", "MONARCH_PROC_FDS")  # descriptors of this process


class NotAnsweredError(JobError):
    """SkyPilot could not be asked just now; its clusters may be well."""


class Client:
    """Answers calls, one at a time; its process starts with the first and ends with `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._program: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._rest = b""

    def ask(self, call: str, **arguments: Any) -> Any:
        """What a call of `calls.Calls` gives.

        Raises:
            JobError: SkyPilot is not installed, or its answer is an error, which is shown.
            NotAnsweredError: there is no answer.

        """
        with self._lock:
            program = self._started()
            assert program.stdin is not None  # noqa: S101 - a pipe
            try:
                program.stdin.write(json.dumps({"call": call, **arguments}).encode() + b"\n")
                program.stdin.flush()
            except OSError:
                pass  # why it has ended is told where its answer is missing
            return self._answer(program, call)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._program is not None and self._program.poll() is None:
            return self._program
        self._end()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._rest = b""
        self._program = subprocess.Popen(
            command(_MODULE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={name: value for name, value in os.environ.items() if name not in _OURS},
            start_new_session=True,  # Ctrl-C is for this program alone
        )
        try:
            self._answer(self._program, "import sky")
        except JobError as error:
            self._end()
            if "No module named 'sky'" not in str(error):
                raise
            raise JobError(
                "a SkyPilotJob needs SkyPilot, which is not installed: pip install skypilot"
            ) from None
        return self._program

    def _answer(self, program: subprocess.Popen[bytes], call: str) -> Any:
        line = self._line(program)
        if line is None:
            said = self._said()
            self._end()
            raise NotAnsweredError(f"SkyPilot's client does not answer ({call}); it said:\n{said}")
        found = json.loads(line)
        if found.get("away"):
            raise NotAnsweredError(f"SkyPilot's server cannot be reached: {found['error']}")
        if "error" in found:
            raise JobError(f"SkyPilot refuses ({call}): {found['error']}")
        return found["gave"]

    def _line(self, program: subprocess.Popen[bytes]) -> bytes | None:
        """A line of its answers; None where it ends or takes too long."""
        assert program.stdout is not None  # noqa: S101 - a pipe
        number = program.stdout.fileno()
        until = time.monotonic() + _SECONDS
        while b"\n" not in self._rest:
            ready, _, _ = select.select([number], [], [], max(until - time.monotonic(), 0))
            data = os.read(number, 65536) if ready else b""
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _said(self) -> str:
        if self._log is None:
            return ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(size - _TAIL, 0))
        return self._log.read().decode(errors="replace").strip()

    def _end(self) -> None:
        program, self._program = self._program, None
        if program is not None:
            program.kill()  # what it asked for goes on at SkyPilot's server
            program.wait()
            for pipe in (program.stdin, program.stdout):
                if pipe is not None:
                    pipe.close()
        if self._log is not None:
            self._log.close()
            self._log = None
