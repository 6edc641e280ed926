"""Wheels put together by hand from the package's sources, and environments to install them in."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = Path(__file__).parents[2]
RUNTIME = REPOSITORY / "runtime"


def write_wheel(folder: Path, name: str, files: dict[str, bytes], version: str = "0.1.0") -> Path:
    """A pure wheel that holds `files`, with METADATA, WHEEL and RECORD."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    wheel = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {**files, f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": wheel.encode()}
    record = "".join(
        f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files.items()
    )
    path = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in files.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return path


def monarch_wheel(folder: Path, platform: str, facts: Mapping[str, object] | None = None) -> Path:
    """`monarch-<platform>` without its native modules; `facts` go into its build info."""
    package = RUNTIME / "monarch"
    files = {
        f"monarch/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }
    info = {"RUNTIME_VERSION": "", "RUNTIME_SONAME": "", "ARCHITECTURES": (), **(facts or {})}
    info |= {"PLATFORM": platform, "VERSION": "0.1.0"}
    lines = "".join(f"{name} = {value!r}\n" for name, value in info.items())
    files["monarch/_build_info.py"] = lines.encode()
    files[f"monarch/_platform_{platform}"] = f"monarch-{platform}\n".encode()
    files[f"monarch_{platform}.py"] = (RUNTIME / "monarch_distribution.py").read_bytes()
    return write_wheel(folder, f"monarch-{platform}", files)


def _digest(content: bytes) -> str:
    digest = hashlib.sha256(content).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class Environment:
    """A clean environment whose only index is the folder `wheels`."""

    root: Path
    wheels: Path

    @property
    def python(self) -> Path:
        return self.root / "bin/python"

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.root,
            env={"PATH": os.environ["PATH"], **environ},
        )

    def pip(self, *arguments: str) -> None:
        """This interpreter's pip, working on the environment."""
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(self.python), *arguments],
            check=True,
            capture_output=True,
            cwd=self.root,
            env={
                **os.environ,
                "PIP_NO_INDEX": "1",
                "PIP_FIND_LINKS": str(self.wheels),
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                "PIP_NO_INPUT": "1",
            },
        )

    def run_printed_commands(self, text: str) -> list[str]:
        """Runs the commands for pip that a message prints, one a line, as they stand there."""
        prefix = f"{self.python} -m pip "
        commands = [line.strip() for line in text.splitlines() if line.strip().startswith(prefix)]
        for command in commands:
            self.pip(*command.removeprefix(prefix).split())
        return commands


def make_environment(root: Path, wheels: Path) -> Environment:
    venv.EnvBuilder(symlinks=True).create(root)
    return Environment(root, wheels)
