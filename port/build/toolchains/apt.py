"""Debian packages without root: apt with its own state, the machine's own mirror and keys.

Nothing below /etc or /var is written. The machine's dpkg status is read, so that a closure holds
only what the machine lacks; a closure for another suite starts from nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from port.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence

STATUS = Path("/var/lib/dpkg/status")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True, slots=True)
class Package:
    """One package of a closure."""

    name: str
    version: str

    @property
    def target(self) -> str:
        return f"{self.name}={self.version}"


def available() -> bool:
    """Whether this machine can fetch Debian packages at all."""
    return all(shutil.which(tool) for tool in ("apt-get", "apt-cache", "dpkg-deb"))


@dataclass(frozen=True, slots=True)
class Apt:
    """An apt whose lists, cache and locks are in `folder`.

    `sources` replaces the machine's sources (one-line format); None uses the machine's own.
    `status` is the dpkg database that says what is installed already.
    """

    folder: Path
    sources: str | None = None
    status: Path = STATUS

    def prepare(self) -> None:
        """Make the folders and fetch the lists of packages.

        A source that cannot be reached is only reported when a package is missed later.
        """
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if self.sources is not None:
            (self.folder / "sources.list").write_text(self.sources, encoding="utf-8")
        self._run("apt-get", "-q", "update", check=False)

    def mirror(self) -> str:
        """The address from which this machine's apt takes Debian's main packages.

        Raises:
            EnvironmentMissingError: the machine's apt has no Debian source.

        """
        text = self._run(
            "apt-get",
            "indextargets",
            "--format",
            "$(ORIGIN)|$(COMPONENT)|$(LABEL)|$(REPO_URI)",
            "Created-By: Packages",
        )
        for line in text.splitlines():
            origin, component, label, address = line.split("|", 3)
            if (origin, component, label) == ("Debian", "main", "Debian"):
                return address
        raise EnvironmentMissingError(
            "apt knows no Debian source on this machine (apt-get indextargets lists none of "
            "origin Debian, component main); add one to /etc/apt/sources.list.d, or install ROCm"
        )

    def versions(self, package: str) -> list[str]:
        """The versions of a package on offer, newest first."""
        text = self._run("apt-cache", "madison", package)
        return [line.split("|")[1].strip() for line in text.splitlines() if line.count("|") > 1]

    def closure(self, packages: Sequence[str]) -> list[Package]:
        """What has to be unpacked so that `packages` work, by name.

        Raises:
            EnvironmentMissingError: apt cannot satisfy them; its own words are in the message.

        """
        text = self._run(
            "apt-get", "-q", "-y", "-s", "--no-install-recommends", "install", *packages
        )
        found = re.findall(r"^Inst (\S+) (?:\[[^\]]*\] )?\((\S+) ", text, re.MULTILINE)
        return sorted((Package(*pair) for pair in found), key=lambda package: package.name)

    def download(self, packages: Sequence[Package], folder: Path) -> list[Path]:
        """Fetch packages into `folder`; apt checks each against the signed lists."""
        folder.mkdir(parents=True, exist_ok=True)
        self._run("apt-get", "-q", "download", *(p.target for p in packages), cwd=folder)
        return sorted(folder.glob("*.deb"))

    def _run(
        self, program: str, *arguments: str, cwd: Path | None = None, check: bool = True
    ) -> str:
        options = [
            f"Dir::State={self.folder / 'state'}",
            f"Dir::State::status={self.status}",
            f"Dir::Cache={self.folder / 'cache'}",
            "Debug::NoLocking=1",
            "APT::Get::List-Cleanup=0",
            "Acquire::Languages=none",
        ]
        if os.geteuid() == 0:
            # The unprivileged user that apt would fetch as cannot enter a private folder.
            options.append("APT::Sandbox::User=root")
        if self.sources is not None:
            options += [
                f"Dir::Etc::sourcelist={self.folder / 'sources.list'}",
                "Dir::Etc::sourceparts=-",
                "Dir::Etc::preferences=-",
                "Dir::Etc::preferencesparts=-",
            ]
        command = [program, *(part for option in options for part in ("-o", option)), *arguments]
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            words = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
            raise EnvironmentMissingError(
                f"{program} {' '.join(arguments[:6])} … failed with status {done.returncode}; "
                f"it said:\n{words}\ncheck that the machine's package mirror answers "
                "(apt-get update), or install the toolkit and name it in ROCM_PATH"
            )
        return done.stdout


def unpack(archives: Sequence[Path], root: Path) -> None:
    """Unpack packages into `root`, without running any of their scripts."""
    root.mkdir(parents=True, exist_ok=True)
    for archive in archives:
        subprocess.run(["dpkg-deb", "-x", str(archive), str(root)], check=True)
