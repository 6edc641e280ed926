"""Stand-ins for HIP runtimes and for what needs them, laid out as torch and ROCm do it."""

from __future__ import annotations

import subprocess
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def shared_library(path: Path, source: str, *flags: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", *flags, "-o", str(path)]
    subprocess.run(command, input=source.encode(), check=True)
    return path


def hip(path: Path, major: int, soname: str = "") -> Path:
    """A HIP runtime with the soname of that major, under any file name."""
    source = f"int hipRuntimeGetVersion(void) {{ return {major}; }}"
    return shared_library(path, source, f"-Wl,-soname,{soname or f'libamdhip64.so.{major}'}")


USER = "extern int hipRuntimeGetVersion(void); int version(void) { return hipRuntimeGetVersion(); }"


def module(folder: Path, major: int) -> Path:
    """Our module: it needs libamdhip64.so.<major>, and nothing tells where that is."""
    link = hip(folder / f"link/libamdhip64.so.{major}", major)
    return shared_library(folder / f"ours{major}.so", USER, str(link))


def torch(folder: Path, major: int = 7, release: str = "7.0.51831") -> Path:
    """An installed torch for ROCm: its copy has the versioned soname under the bare file name."""
    package = folder / "torch"
    hip(package / "lib/libamdhip64.so", major)
    # Linked against a library whose soname is the bare name, so that the need is for that name.
    link = shared_library(
        folder / "link/libamdhip64.so",
        "int hipRuntimeGetVersion(void) { return 0; }",
        "-Wl,-soname,libamdhip64.so",
    )
    needs = [str(link), "-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"]
    shared_library(package / "lib/libtorch_hip.so", USER, *needs)
    (package / "version.py").write_text(
        f"__version__ = '2.9.0'\nhip: Optional[str] = '{release}'\n", encoding="utf-8"
    )
    (package / "__init__.py").write_text(
        textwrap.dedent(
            """\
            import ctypes
            import pathlib

            ctypes.CDLL(str(pathlib.Path(__file__).parent / "lib/libtorch_hip.so"))
            """
        ),
        encoding="utf-8",
    )
    return package
