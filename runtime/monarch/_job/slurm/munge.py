"""The secret as a credential of munge: sealed for this user on machines of this cluster."""

from __future__ import annotations

import os
import re
import subprocess

from monarch._job.slurm.commands import environment
from monarch.errors import SecretError

_SECONDS = 30.0
# What unmunge says of a credential that is whole and ours: good, expired, from the future, used
# before. The file lasts as long as the job, and every host of a node reads it.
_OPENED = frozenset({0, 15, 16, 17})


def seal(key: bytes) -> bytes:
    """A credential that holds this key; only this user can open it.

    Raises:
        SecretError: munge cannot be had.

    """
    command = ["munge", f"--restrict-uid={os.geteuid()}", "--ttl=-1", *_socket()]
    answer = _run(command, key.hex().encode())
    if answer.returncode != 0:
        raise SecretError(f"munge cannot seal the secret: {_said(answer)}")
    return answer.stdout


def open_sealed(credential: bytes) -> bytes:
    """The key in a credential.

    Raises:
        SecretError: it is of another cluster or user, or munge cannot be had.

    """
    command = ["unmunge", "--metadata=/dev/null", "--output=-", *_socket()]
    answer = _run(command, credential)
    if answer.returncode not in _OPENED:
        raise SecretError(f"munge cannot open the secret: {_said(answer)}")
    try:
        return bytes.fromhex(answer.stdout.decode("ascii"))
    except ValueError:
        raise SecretError("munge opened a secret that is none") from None


def _socket() -> list[str]:
    """The option for the daemon that SLURM uses, where that is not munge's own default."""
    try:
        answer = _run(["scontrol", "show", "config"], b"")
    except SecretError:
        return []
    found = re.search(rb"(?m)^AuthInfo\s*=.*?\bsocket=([^,\s]+)", answer.stdout)
    return [f"--socket={found[1].decode()}"] if found else []


def _run(command: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command,
            input=data,
            env=environment(os.environ),
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except FileNotFoundError:
        raise SecretError(
            f"{command[0]} is not on this machine's PATH; munge=True needs munge there and on the "
            "nodes (Debian: apt-get install munge)"
        ) from None
    except subprocess.TimeoutExpired:
        raise SecretError(f"{command[0]} has not answered for {_SECONDS:g} s") from None


def _said(answer: subprocess.CompletedProcess[bytes]) -> str:
    text = answer.stderr.decode(errors="replace").strip()
    return text[-500:] or f"status {answer.returncode} and no word"
