"""Find installed CUDA and ROCm toolkits: where each was looked for, what was there, which version.

Nothing here chooses between them (`port.platform` does), and Python distributions that carry parts
of CUDA are never looked at: torch brings them to machines on which nobody wants a CUDA build.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from packaging.version import InvalidVersion, Version

from port.architectures import compiled_by_clang, compiled_by_nvcc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Kind = Literal["cuda", "rocm"]

FLOORS: Mapping[str, Version] = {"cuda": Version("12.0"), "rocm": Version("5.2")}
"""The oldest releases that build."""

MULTIARCH = ("x86_64-linux-gnu", "aarch64-linux-gnu")
"""Debian's library folders, below /usr/lib."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """An installed toolkit that a build can use.

    `compiler` is nvcc or hipcc where there is one; `library` holds libcudart_static.a or
    libamdhip64.so; `architectures` is what the compiler says it can generate code for, empty when
    it cannot be asked. `version` is None only for headers that name none.
    """

    kind: Kind
    root: Path
    version: Version | None
    found_by: str
    compiler: Path | None
    include: Path
    library: Path | None
    architectures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Searched:
    """One place that was looked at: `by` says why, `result` what was there."""

    kind: Kind
    by: str
    path: Path | None
    result: str


@dataclass(frozen=True, slots=True)
class Machine:
    """What is searched: variables and a file system, which may be below another folder than /."""

    environ: Mapping[str, str]
    root: Path

    def at(self, path: str | Path) -> Path:
        """`path` as a program whose root folder is `self.root` would mean it."""
        return self.root / str(path).lstrip("/")

    def on_path(self, program: str) -> Path | None:
        """The first executable of that name on PATH."""
        folders = [entry for entry in self.environ.get("PATH", "").split(":") if entry]
        search = ":".join(str(self.at(entry)) for entry in folders)
        found = shutil.which(program, path=search) if search else None
        return Path(found) if found else None

    def ask(self, *command: str | Path) -> str:
        """All that a tool prints, on both streams; empty when it cannot be run."""
        try:
            done = subprocess.run(
                [str(part) for part in command],
                env={**self.environ, "LC_ALL": "C", "HIP_PLATFORM": "amd"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=20,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.decode(errors="replace")


def search(machine: Machine) -> tuple[tuple[Toolkit, ...], tuple[Searched, ...]]:
    """Every toolkit of `machine`, the preferred one of each kind first, and every place tried."""
    toolkits: list[Toolkit] = []
    searched: list[Searched] = []
    known: dict[tuple[Kind, Path], str] = {}
    for kind, by, path in _places(machine):
        if path is None:
            searched.append(Searched(kind, by, None, "not set" if by.isupper() else "not on PATH"))
            continue
        real = path.resolve()
        if (kind, real) in known:
            searched.append(Searched(kind, by, path, f"the same as {known[kind, real]}"))
            continue
        found = _examine(machine, kind, by, path)
        if isinstance(found, Toolkit):
            known[kind, real] = by
            toolkits.append(found)
            searched.append(Searched(kind, by, path, f"{label(kind)} {found.version or '?'}"))
        else:
            searched.append(Searched(kind, by, path, found))
    return tuple(toolkits), tuple(searched)


def label(kind: str) -> str:
    """The name of a kind of toolkit in messages."""
    return {"cuda": "CUDA", "rocm": "ROCm"}[kind]


_SOURCES: tuple[tuple[Kind, tuple[str, ...], str, str], ...] = (
    ("cuda", ("CUDA_HOME", "CUDA_PATH"), "nvcc", "/usr/local/cuda"),
    ("rocm", ("ROCM_PATH", "ROCM_HOME"), "hipcc", "/opt/rocm"),
)


def _places(machine: Machine) -> Iterator[tuple[Kind, str, Path | None]]:
    for kind, variables, program, fixed in _SOURCES:
        for variable in variables:
            value = machine.environ.get(variable, "")
            yield kind, variable, machine.at(value) if value else None
        compiler = machine.on_path(program)
        home = _home_of(machine, compiler) if compiler else None
        yield kind, f"{program} on PATH", home
        yield kind, fixed, machine.at(fixed)
        yield kind, "the distribution's packages", machine.at("/usr")


def _home_of(machine: Machine, compiler: Path) -> Path:
    """The toolkit's folder above its compiler, looked for through links and wrapper scripts."""
    for candidate in (compiler, compiler.resolve()):
        if candidate.parent.name == "bin" and _include(candidate.parent.parent, _FIRST_HEADERS):
            return candidate.parent.parent
    if compiler.name == "nvcc":
        # A wrapper: nvcc prints the folder it works from, whatever stands before it on PATH.
        top = re.search(r"^#\$ TOP=(.+?)\s*$", machine.ask(compiler, "-v", "__port"), re.MULTILINE)
        if top:
            return Path(top[1]).resolve()
    target = _exec_target(machine, compiler)
    return target.resolve().parent.parent if target else compiler.resolve().parent.parent


def _exec_target(machine: Machine, script: Path) -> Path | None:
    """The program that a wrapper script runs by absolute path, when it is of the same name."""
    with script.open("rb") as stream:
        head = stream.read(4096)
    if not head.startswith(b"#!"):
        return None
    found = re.search(
        rf"^\s*exec\s+[\"']?(/[^\s\"']*/{re.escape(script.name)})\b".encode(), head, re.MULTILINE
    )
    return machine.at(found[1].decode(errors="replace")) if found else None


_PARTS: Mapping[Kind, tuple[str, str, tuple[str, ...]]] = {
    "cuda": ("cuda.h", "cuda_runtime_api.h", ("libcudart_static.a",)),
    "rocm": (
        "hip/hip_version.h",
        "hip/hip_runtime_api.h",
        ("libamdhip64.so", "libamdhip64.so.*"),
    ),
}
_FIRST_HEADERS = ("cuda.h", "hip/hip_version.h")


def _examine(machine: Machine, kind: Kind, by: str, root: Path) -> Toolkit | str:
    """The toolkit at `root`, or what it lacks."""
    if not root.is_dir():
        return "no such folder"
    first, second, libraries = _PARTS[kind]
    include = _include(root, (first,))
    if include is None:
        return f"no {first}"
    if not (include / second).is_file():
        return f"{include / first}, but no {second} beside it"
    library = _library(root, libraries)
    if library is None:
        return f"headers, but no {libraries[0]}"
    compiler = _compiler(machine, kind, root)
    return Toolkit(
        kind=kind,
        root=root,
        version=cuda_version(root, include) if kind == "cuda" else rocm_version(root, include),
        found_by=by,
        compiler=compiler,
        include=include,
        library=library,
        architectures=_architectures(machine, kind, root, compiler),
    )


def _include(root: Path, names: tuple[str, ...]) -> Path | None:
    folders = [root / "include", *sorted(root.glob("targets/*-linux/include"))]
    return next((f for f in folders for name in names if (f / name).is_file()), None)


def _library(root: Path, names: tuple[str, ...]) -> Path | None:
    folders = [
        *(root / "lib" / triplet for triplet in MULTIARCH),
        root / "lib64",
        root / "lib",
        *sorted(root.glob("targets/*-linux/lib")),
    ]
    return next((f for f in folders if any(any(f.glob(name)) for name in names)), None)


def _compiler(machine: Machine, kind: Kind, root: Path) -> Path | None:
    name = "nvcc" if kind == "cuda" else "hipcc"
    own = root / "bin" / name
    if own.is_file():
        return own
    named = machine.on_path(name)
    return named if named and _home_of(machine, named).resolve() == root.resolve() else None


def _architectures(
    machine: Machine, kind: Kind, root: Path, compiler: Path | None
) -> tuple[str, ...]:
    if compiler is None:
        return ()
    if kind == "cuda":
        return compiled_by_nvcc(machine.ask(compiler, "--list-gpu-arch"))
    clang = _clang_of(machine, root, compiler)
    if clang is None:
        return ()
    # Debian's clang does not find the device libraries by itself, and then answers nothing.
    ask = ("--target=amdgcn-amd-amdhsa", "-nogpulib", "-print-supported-cpus")
    return compiled_by_clang(machine.ask(clang, *ask))


def _clang_of(machine: Machine, root: Path, hipcc: Path) -> Path | None:
    """The clang that this hipcc runs: its own, or the versioned one that Debian's script names."""
    for folder in ("llvm/bin", "lib/llvm/bin"):
        if (root / folder / "clang++").is_file():
            return root / folder / "clang++"
    for script in (hipcc, hipcc.with_name("hipcc.pl")):
        if script.is_file():
            named = re.search(rb"clang\+\+-\d+", script.read_bytes())
            if named:
                beside = hipcc.with_name(named[0].decode())
                return beside if beside.is_file() else machine.on_path(beside.name)
    return None


def cuda_version(root: Path, include: Path) -> Version | None:
    """The CUDA release of a toolkit: what its headers say, with the patch number of version.json.

    CUDA_VERSION and CUDART_VERSION are defined as 1000 * major + 10 * minor.
    """
    header: Version | None = None
    for name, macro in (("cuda.h", "CUDA_VERSION"), ("cuda_runtime_api.h", "CUDART_VERSION")):
        number = _defined(include / name, macro)
        if number is not None:
            header = Version(f"{number // 1000}.{number % 1000 // 10}")
            break
    return _refine(header, root / "version.json", _version_of_json)


def rocm_version(root: Path, include: Path) -> Version | None:
    """The ROCm release of a toolkit: what hip_version.h says, with the rest of .info/version."""
    path = include / "hip" / "hip_version.h"
    parts = [_defined(path, f"HIP_VERSION_{part}") for part in ("MAJOR", "MINOR", "PATCH")]
    header = None
    if parts[0] is not None and parts[1] is not None:
        header = Version(".".join(str(part) for part in parts if part is not None))
    return _refine(header, root / ".info" / "version", lambda text: text.strip().split("-")[0])


def release(version: Version) -> str:
    """Major and minor of a version, as releases are named: 7.12, 10.0, 12.9."""
    return f"{version.major}.{version.minor}"


def rocm_label(version: Version) -> str:
    """The name of a ROCm release in labels: `rocm7.12`. Never a number made by arithmetic."""
    return f"rocm{release(version)}"


def _refine(header: Version | None, path: Path, read: Callable[[str], str]) -> Version | None:
    """The version in `path` where it is of the release that the headers name, else the headers'.

    The headers are what gets compiled: a file beside them only adds the patch number.
    """
    if not path.is_file():
        return header
    try:
        stated = Version(read(path.read_text(encoding="utf-8", errors="replace")))
    except InvalidVersion:
        return header
    if header is None or release(stated) == release(header):
        return stated
    return header


def _version_of_json(text: str) -> str:
    try:
        return str(json.loads(text)["cuda"]["version"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return text[:80]


def _defined(path: Path, macro: str) -> int | None:
    """The number that a header defines `macro` as."""
    if not path.is_file():
        return None
    pattern = rb"^[ \t]*#[ \t]*define[ \t]+" + macro.encode() + rb"[ \t]+\(?(\d+)\)?"
    found = re.search(pattern, path.read_bytes(), re.MULTILINE)
    return int(found[1]) if found else None
