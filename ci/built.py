"""The wheels of this tree for the tests: built once for each content, and kept under .cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PLATFORMS = ("cpu", "cuda", "rocm")
_SOURCES = (
    *("CMakeLists.txt", "LICENSE", "README.md", "cmake"),
    *("native", "port", "pyproject.toml", "runtime"),
)
_TOOLS = ("nvcc", "hipcc", "c++")
_VARIABLES = {"CUDA_HOME", "CUDA_PATH", "ROCM_HOME", "ROCM_PATH"}


def wheel(platform: str) -> Path:
    """The repaired and verified wheel of `platform`, built with this interpreter when not there.

    Raises:
        RuntimeError: with what the build said, when it failed.
    """
    folder = ROOT / ".cache/wheels" / _key() / platform
    found = sorted(folder.glob("*.whl"))
    if not found:
        command = [sys.executable, "-m", "port.build", "wheel", "--platform", platform]
        done = subprocess.run(
            [*command, "--output", str(folder)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            message = f"no {platform} wheel (status {done.returncode}):\n{done.stdout}"
            raise RuntimeError(message)
        found = sorted(folder.glob("*.whl"))
    (only,) = found
    return only


def _key() -> str:
    """Changes with the sources, the interpreter, and where a toolkit would be found."""
    total = hashlib.sha256(sys.version.encode())
    for tool in _TOOLS:
        total.update(f"{shutil.which(tool)}\n".encode())
    for name, value in sorted(os.environ.items()):
        if name in _VARIABLES or name.startswith("GPU_"):
            total.update(f"{name}={value}\n".encode())
    for path in _files():
        total.update(f"{path.relative_to(ROOT)}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def _files() -> Iterator[Path]:
    for name in _SOURCES:
        start = ROOT / name
        if start.is_file():
            yield start
        for path in sorted(start.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so":
                yield path


def place_core() -> Path:
    """Put the cpu wheel's `_core` beside the package's sources, so that these run as they are.

    Git and the builds of wheels leave it aside.
    """
    with zipfile.ZipFile(wheel("cpu")) as archive:
        (name,) = [n for n in archive.namelist() if re.fullmatch(r"monarch/_core\.[^/]*so", n)]
        data = archive.read(name)
    place = ROOT / "runtime" / name
    for other in place.parent.glob("_core.*so"):
        if other.name.startswith(("_core.abi3", f"_core.{sys.implementation.cache_tag}")):
            other.unlink()  # of this interpreter, and found before or after the new one
    fresh = place.with_name(f"{place.name}.new")
    fresh.write_bytes(data)
    fresh.replace(place)  # whoever has the old one mapped keeps it
    return place


def main() -> None:
    """Build what is missing, for the session that comes before the tests."""
    for platform in PLATFORMS:
        print(f"{platform}: {wheel(platform).relative_to(ROOT)}", flush=True)
    print(f"core: {place_core().relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    main()
