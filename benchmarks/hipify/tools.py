"""The converters that are measured: ours and its peers, each run as its users run it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY = Path(__file__).resolve().parents[2]
PERL_LIMIT_S = 60  # of CPU time
_TORCH_LOAD = """
import importlib.util, json, sys, types
folder, source, target, *include = sys.argv[1:]
package = types.ModuleType("hipify"); package.__path__ = [folder]; sys.modules["hipify"] = package
name = "hipify.hipify_python"
spec = importlib.util.spec_from_file_location(name, folder + "/hipify_python.py")
module = importlib.util.module_from_spec(spec); sys.modules[name] = module
spec.loader.exec_module(module)
"""
_TORCH_EXTENSION = """
made = module.hipify(project_directory=source, output_directory=target, includes=["*"],
                     header_include_dirs=[".", *include], show_progress=False,
                     is_pytorch_extension=True)
paths = {old: new.hipified_path or old for old, new in made.items()}
print("\\n" + json.dumps(paths))
"""
_TORCH_HEADERS = """
module.hipify(project_directory=source, output_directory=source, show_progress=False,
              includes=[source + part for part in json.loads(target)], header_include_dirs=[source])
"""
_TORCH_FOLDERS = ("/ATen/cuda/*", "/ATen/native/cuda/*", "/ATen/cudnn/*", "/c10/cuda/*")


@dataclass(frozen=True, slots=True)
class Run:
    """One conversion of one tree: where each input's output is, and what the tool said.

    `seconds` are of CPU time.
    `outputs` maps inputs (relative) to output files; `told` holds (file, line) of its report;
    `own` the (file, name) pairs that the report calls the project's own.
    """

    top: Path
    outputs: dict[str, Path]
    seconds: float
    status: int
    told: frozenset[tuple[str, int]] = frozenset()
    own: frozenset[tuple[str, str]] = frozenset()
    second_run: int | None = None


def ours(top: Path, out: Path, release: str = "6.4") -> Run:
    """`python -m port.hipify`, cold; then over its own output, which has to change nothing."""
    shutil.rmtree(out, ignore_errors=True)
    start = cpu_seconds()
    report, status = _port(top, out, release)
    seconds = cpu_seconds() - start
    again = out.with_name(out.name + "-again")
    shutil.rmtree(again, ignore_errors=True)
    _port(out, again, release)
    inputs = [p for p in out.rglob("*") if p.is_file() and ".hipify" not in p.parts]
    changed = sum(
        (again / path.relative_to(out)).read_bytes() != path.read_bytes()
        for path in inputs
        if (again / path.relative_to(out)).is_file()
    )
    outputs = {
        str(p.relative_to(top)): out / p.relative_to(top) for p in top.rglob("*") if p.is_file()
    }
    findings = report["findings"]
    return Run(
        out,
        outputs,
        seconds,
        status,
        frozenset((f["file"], f["line"]) for f in findings),
        frozenset((f["file"], f["name"]) for f in findings if f["rule"] == "own-name"),
        changed,
    )


def _port(top: Path, out: Path, release: str) -> tuple[dict[str, Any], int]:
    command = [sys.executable, "-m", "port.hipify", str(top), "-o", str(out), "--json"]
    environment = dict(os.environ, PYTHONPATH=str(REPOSITORY))
    done = subprocess.run(
        [*command, "--rocm", release], capture_output=True, text=True, env=environment, check=False
    )
    if not done.stdout.startswith("{"):
        raise RuntimeError(f"port.hipify {top}: status {done.returncode}: {done.stderr[-500:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report, done.returncode


def torch(top: Path, out: Path, folder: Path, include: tuple[str, ...] = ()) -> Run:
    """torch.utils.hipify from its own folder, as torch's extension builder calls it."""
    shutil.rmtree(out, ignore_errors=True)
    command = [
        sys.executable,
        "-c",
        _TORCH_LOAD + _TORCH_EXTENSION,
        str(folder),
        str(top),
        str(out),
    ]
    command += include
    start = cpu_seconds()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = cpu_seconds() - start
    outputs = {
        str(p.relative_to(top)): out / p.relative_to(top) for p in top.rglob("*") if p.is_file()
    }
    if done.returncode == 0:
        for old, new in json.loads(done.stdout.splitlines()[-1]).items():
            relative = os.path.relpath(old, out if str(old).startswith(str(out)) else top)
            outputs[relative] = Path(new)
    return Run(out, outputs, seconds, done.returncode)


def convert_torch_headers(top: Path, folder: Path) -> None:
    """Convert torch's own headers in place, as the ROCm build of torch does."""
    command = [sys.executable, "-c", _TORCH_LOAD + _TORCH_HEADERS, str(folder), str(top)]
    subprocess.run([*command, json.dumps(_TORCH_FOLDERS)], check=True, capture_output=True)


def perl(top: Path, out: Path, script: Path, files: Iterable[str]) -> Run:
    """hipify-perl over `files` of `top`, into a tree of the same shape; the others are copied.

    A file that it does not finish in time stays as it was.
    """
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(top, out)
    outputs = {name: out / name for name in files}
    start = cpu_seconds()
    status = 0
    for relative, path in outputs.items():
        limited = ["prlimit", f"--cpu={PERL_LIMIT_S}"]
        command = [*limited, "perl", str(script), str(top / relative)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode < 0:
            status = max(status, 124)
            continue
        path.write_bytes(done.stdout)
        status = max(status, done.returncode)
    return Run(out, outputs, cpu_seconds() - start, status)


def cpu_seconds() -> float:
    """CPU time of all processes started so far that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


SUFFIXES = frozenset(
    (".cu", ".cuh", ".hu", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".hxx", ".inl", ".inc")
)
