"""Bring the header packages that `sources.toml` names: PyPI by pip, Debian by apt-get.

Nothing is installed and apt's own configuration is not touched: each suite gets state folders of
its own inside the cache.
"""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from port.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from collections.abc import Iterable

_log = logging.getLogger(__name__)
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class Cache:
    """Unpacked header trees under one folder, fetched once."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def wheel(self, requirement: str) -> Path:
        """Folder with the headers of one wheel (only members below an `include` folder)."""
        target = self._root / "pypi" / requirement.replace("==", "-")
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=_made(self._root)) as scratch:
                command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
                command += ["--only-binary=:all:", "--python-version=3.11", "-d", scratch]
                _run([*command, requirement])
                (wheel,) = Path(scratch).glob("*.whl")
                unpacked = Path(scratch) / "unpacked"
                with zipfile.ZipFile(wheel) as archive:
                    members = [name for name in archive.namelist() if "/include/" in name]
                    archive.extractall(unpacked, members)
                _made(target.parent)
                shutil.move(unpacked, target)
        return target

    def debian(self, suite: str, packages: Iterable[str]) -> Path:
        """Root folder with the given packages of a Debian suite unpacked."""
        packages = sorted(packages)
        target = self._root / "debian" / suite / f"{zlib.crc32(' '.join(packages).encode()):08x}"
        if not target.exists():
            options = self._apt(suite)
            with tempfile.TemporaryDirectory(dir=_made(self._root)) as scratch:
                _run(["apt-get", *options, "download", *packages], cwd=Path(scratch))
                unpacked = Path(scratch) / "unpacked"
                for each in sorted(Path(scratch).glob("*.deb")):
                    _run(["dpkg-deb", "-x", str(each), str(unpacked)])
                _made(target.parent)
                shutil.move(unpacked, target)
        return target

    def _apt(self, suite: str) -> list[str]:
        if shutil.which("apt-get") is None or not _KEYRING.exists():
            raise EnvironmentMissingError(
                "the headers of Debian packages need apt-get and Debian's archive keys; "
                "run the generator on Debian, or install debian-archive-keyring"
            )
        state = self._root / "apt" / suite
        for folder in ("lists/partial", "archives/partial", "etc/preferences.d"):
            _made(state / folder)
        (state / "status").touch()
        source = state / "etc" / "sources.list"
        options = [
            f"Dir::Etc={state / 'etc'}",
            f"Dir::State={state}",
            f"Dir::State::Lists={state / 'lists'}",
            f"Dir::State::status={state / 'status'}",
            f"Dir::Cache={state}",
            "APT::Sandbox::User=root",
        ]
        flags = [word for option in options for word in ("-o", option)]
        if not source.exists():
            source.write_text(f"deb [signed-by={_KEYRING}] {_mirror()} {suite} main\n")
            _run(["apt-get", *flags, "--quiet=2", "update"])
        return flags


def _mirror() -> str:
    """The mirror that this machine's apt uses for Debian's main archive."""
    places = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    for place in places:
        if place.is_file():
            found = re.search(r"https?://\S*/debian/?(?=\s)", place.read_text())
            if found:
                return found.group()
    raise EnvironmentMissingError(
        "no Debian mirror in /etc/apt/sources.list or /etc/apt/sources.list.d"
    )


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(command: list[str], cwd: Path | None = None) -> None:
    _log.info("%s", " ".join(command))
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-5:])
        raise EnvironmentMissingError(f"{' '.join(command)} failed:\n{tail}")
