"""System packages that the sessions need: one table, and how a missing one is brought."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ENVIRONMENT_MISSING = 5
_LOCK_WAIT = 600
_STDERR = 2


@dataclass(frozen=True, slots=True)
class SystemPackage:
    """A Debian package, and what shows that the machine has what it carries.

    One of the others is given: a `command` on PATH, an absolute path of a `file`, or a library of
    the compiler's own (`clang_library`), which lies where clang++ says.
    """

    name: str
    command: str = ""
    file: str = ""
    clang_library: str = ""

    def present(self) -> bool:
        if self.command:
            return shutil.which(self.command) is not None
        if self.clang_library:
            return _clang_finds(self.clang_library)
        return Path(self.file).exists()

    def __str__(self) -> str:
        return self.command or self.file or self.clang_library


def _clang_finds(library: str) -> bool:
    if shutil.which("clang++") is None:
        return False
    query = ["clang++", f"--print-file-name={library}"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    return Path(answer).is_absolute()  # a name it does not find comes back as it was given


GXX = SystemPackage("g++", command="g++")
GIT = SystemPackage("git", command="git")
PYTHON_HEADERS = SystemPackage(
    f"python{sys.version_info.major}.{sys.version_info.minor}-dev",
    file=f"{sysconfig.get_path('include')}/Python.h",
)
DOCTEST = SystemPackage("doctest-dev", file="/usr/include/doctest/doctest.h")
CLANG_HIP = SystemPackage(
    "clang-19", command="clang-19"
)  # knows gfx942; Debian 12's clang does not
CLANG = SystemPackage("clang", command="clang++")
CLANG_RUNTIMES = SystemPackage(
    "libclang-rt-dev", clang_library=f"libclang_rt.fuzzer-{platform.machine()}.a"
)
GXX_ARM64 = SystemPackage("g++-aarch64-linux-gnu", command="aarch64-linux-gnu-g++")
QEMU = SystemPackage("qemu-user", command="qemu-aarch64")
VALGRIND = SystemPackage("valgrind", command="valgrind")
PODMAN = SystemPackage("podman", command="podman")
RUNC = SystemPackage("runc", command="runc")
MMDEBSTRAP = SystemPackage("mmdebstrap", command="mmdebstrap")

SLURM = (
    SystemPackage("slurmctld", command="slurmctld"),
    SystemPackage("slurmd", command="slurmd"),
    SystemPackage("slurm-client", command="sbatch"),
    SystemPackage("munge", command="munged"),
)
ACCOUNTS = (  # limits of SLURM's own
    SystemPackage("slurmdbd", command="slurmdbd"),
    SystemPackage("mariadb-server", command="mariadbd"),
)
SSH = (
    SystemPackage("openssh-server", file="/usr/sbin/sshd"),
    SystemPackage("openssh-client", command="ssh"),
)
NAMESPACES = (
    SystemPackage("iproute2", command="ip"),
    SystemPackage("nftables", command="nft"),
)
RSYNC = SystemPackage("rsync", command="rsync")

_COMPILE = (GXX, GIT, PYTHON_HEADERS)

NEEDS: dict[str, tuple[SystemPackage, ...]] = {
    "build": _COMPILE,
    "tests": (*_COMPILE, DOCTEST, CLANG_HIP, *SLURM, *ACCOUNTS, *SSH, *NAMESPACES),
    "cpp": (GXX, DOCTEST),
    "sanitize": (GXX, CLANG, CLANG_RUNTIMES, DOCTEST),
    "arm64": (GXX_ARM64, QEMU, DOCTEST),
    "calls": (GXX, VALGRIND),
    "fuzz": (GXX, CLANG, CLANG_RUNTIMES),
    "bench": (*_COMPILE, *NAMESPACES),
    "elastic": _COMPILE,
    "skypilot": (*_COMPILE, *SLURM, *SSH, RSYNC),
    "gpu-tests": (GIT,),
    "cibuildwheel": (GIT, PODMAN, RUNC, MMDEBSTRAP),
    "lint": (GIT,),
}


class PackageError(SystemExit):
    """Ends nox itself: its own failures are all status 1, and a missing package is 5."""

    def __init__(self, message: str) -> None:
        print(f"ci: {message}", file=sys.stderr, flush=True)
        super().__init__(ENVIRONMENT_MISSING)


def which(tool: str) -> str | None:
    """Where a program of the system lies, daemons included; None where it is not installed."""
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")


def ensure(session: str) -> None:
    """Bring the system packages of `session`.

    Installs them when root on a Debian family, saying so.

    Raises:
        PackageError: status 5, with the one line to type, where that is not possible.
    """
    missing = [package for package in NEEDS[session] if not package.present()]
    if not missing:
        return
    line = install_line(missing)
    lacks = ", ".join(str(package) for package in missing)
    if shutil.which("apt-get") is None:
        names = " ".join(package.name for package in missing)
        message = (
            f"session {session} needs {lacks}; this is no Debian family, so install what "
            f"carries them (Debian names: {names}) and run this again"
        )
        raise PackageError(message)
    if os.geteuid() != 0:
        message = f"session {session} needs {lacks}; type this and run again: sudo {line}"
        raise PackageError(message)
    print(f"ci: session {session} needs {lacks}; running: {line}", file=sys.stderr, flush=True)
    _apt_get(["update", "-q"], line)
    _apt_get(shlex.split(line)[1:], line)
    still = [package for package in missing if not package.present()]
    if still:
        lacks = ", ".join(str(package) for package in still)
        message = f"apt-get ended well, yet {lacks} is not there; session {session} cannot go on"
        raise PackageError(message)


def install_line(packages: Iterable[SystemPackage]) -> str:
    """The command that installs `packages` on a Debian family."""
    names = sorted({package.name for package in packages})
    return shlex.join(["apt-get", "install", "-y", "--no-install-recommends", *names])


def _apt_get(arguments: Sequence[str], line: str) -> None:
    command = ["apt-get", "-o", f"DPkg::Lock::Timeout={_LOCK_WAIT}", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}

    def attempt() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdout=_STDERR,
            text=True,
            check=False,
        )

    result = _past_foreign_locks(attempt)
    if result.returncode != 0:
        sys.stderr.write(result.stderr)
        message = f"apt-get failed (above); when it works, type: {line}"
        raise PackageError(message)


def _past_foreign_locks(
    attempt: Callable[[], subprocess.CompletedProcess[str]],
) -> subprocess.CompletedProcess[str]:
    # apt waits for dpkg's lock by itself, but gives up at once on the lock of its lists.
    end = time.monotonic() + _LOCK_WAIT
    while True:
        result = attempt()
        held = result.returncode != 0 and "Could not get lock" in result.stderr
        if not held or time.monotonic() > end:
            return result
        time.sleep(2)
