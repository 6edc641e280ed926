"""Bring the header packages that `sources.toml` names: PyPI by pip, Debian by apt-get.

Nothing is installed, and apt's own configuration is not touched.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import zipfile
import zlib
from functools import cached_property
from typing import TYPE_CHECKING

from port.build.cache import entry
from port.build.toolchains import apt, foreign
from port.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

_log = logging.getLogger(__name__)


class Cache:
    """Unpacked header trees under one folder, fetched once."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._suites: dict[str, apt.Apt] = {}

    def wheel(self, requirement: str) -> Path:
        """Folder with the headers of one wheel (only members below an `include` folder)."""

        def fill(place: Path) -> None:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", "--python-version=3.11", "-d", str(place)]
            _run([*command, requirement])
            (wheel,) = place.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                members = [name for name in archive.namelist() if "/include/" in name]
                archive.extractall(place, members)
            wheel.unlink()

        return self._entry("pypi", requirement.replace("==", "-"), fill)

    def debian(self, suite: str, packages: Iterable[str]) -> Path:
        """Root folder with packages of a Debian suite unpacked: names, or `name=version`."""
        wanted = sorted(packages)

        def fill(place: Path) -> None:
            source = self._suite(suite)
            pinned = [
                apt.Package(name, version or _newest(source, suite, name))
                for name, _, version in (each.partition("=") for each in wanted)
            ]
            archives = source.download(pinned, place / "archives")
            apt.unpack(archives, place)
            for archive in archives:
                archive.unlink()

        return self._entry("debian", f"{suite}-{zlib.crc32(' '.join(wanted).encode()):08x}", fill)

    def _entry(self, kind: str, name: str, fill: Callable[[Path], None]) -> Path:
        folder = self._root / kind / name
        if not folder.is_dir():
            _log.info("fetching %s", name)
        return entry(folder, fill)

    def _suite(self, suite: str) -> apt.Apt:
        if suite not in self._suites:
            if not apt.available():
                raise EnvironmentMissingError(
                    "the headers of Debian packages need apt-get; run the generator on Debian"
                )
            place = self._root / "apt" / suite
            place.mkdir(parents=True, exist_ok=True)
            empty = place / "no-status"
            empty.touch()
            line = f"deb [signed-by={foreign.keyring()}] {self._mirror} {suite} main\n"
            self._suites[suite] = apt.Apt(place, sources=line, status=empty)
            self._suites[suite].prepare()
        return self._suites[suite]

    @cached_property
    def _mirror(self) -> str:
        own = apt.Apt(self._root / "apt" / "own")
        own.prepare()
        return own.mirror()


def _newest(source: apt.Apt, suite: str, package: str) -> str:
    versions = source.versions(package)
    if not versions:
        raise EnvironmentMissingError(
            f"{package}: not in {suite} as apt knows it; its lists could not be fetched, or expired"
        )
    return versions[0]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-5:])
        raise EnvironmentMissingError(f"{' '.join(command)} failed:\n{tail}")
