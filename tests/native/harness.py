"""Runs Python programs against a built wheel, with stand-ins in place of the GPU's libraries."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.native.standins import build as standins

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HIP_5_7 = "50731921"  # as hipDriverGetVersion has it
PROGRAMS = Path(__file__).resolve().parent / "programs"
PLATFORMS = ("cuda", "rocm")


@dataclass(frozen=True, slots=True)
class Package:
    """An unpacked wheel, and the stand-ins for what it loads."""

    platform: str
    folder: Path
    libraries: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def with_environment(self, **values: str) -> Package:
        return Package(self.platform, self.folder, self.libraries, {**self.environment, **values})

    def start(
        self, program: str | Path, *arguments: str, pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[str]:
        """A process that runs a program of `programs/`, or the text of one."""
        if isinstance(program, Path):
            command = [sys.executable, str(program), *arguments]
        else:
            command = [sys.executable, "-c", program, *arguments]
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PYTHONPATH": str(self.folder),
            "LD_LIBRARY_PATH": str(self.libraries),
            **self.environment,
        }
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=pass_fds,
        )

    def run(self, program: str | Path, *arguments: str) -> str:
        """What the program printed; a failure carries what it wrote on stderr."""
        return finish(self.start(program, *arguments))


def finish(process: subprocess.Popen[str], timeout: float = 120) -> str:
    """Wait for a process and return its output; fail with its errors."""
    try:
        out, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        raise AssertionError(f"timed out; output: {out}; errors: {errors}") from None
    assert process.returncode == 0, f"status {process.returncode}: {errors}"
    return out


def unpack(wheel: Path, platform: str, folder: Path, libraries: Path) -> Package:
    """Unpack a wheel beside freshly built stand-ins of the release it was built for."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    built = Package(platform, folder, standins.build(libraries, kind_of(folder, platform)))
    # One soname has two layouts; the stand-in has that of the release it says that it is.
    text = (folder / "monarch/_build_info.py").read_text("utf-8")
    if platform == "rocm" and "5.7" in text:
        return built.with_environment(MONARCH_STANDIN_VERSION=HIP_5_7)
    return built


def kind_of(folder: Path, platform: str) -> str:
    """Which stand-in serves the wheel: the ROCm major is that of the soname it needs."""
    if platform == "cuda":
        return "cuda"
    text = (folder / "monarch/_build_info.py").read_text("utf-8")
    found = re.search(r"libamdhip64\.so\.(\d+)", text)
    assert found, f"no soname of HIP's runtime in {text}"
    return f"rocm{found[1]}"
