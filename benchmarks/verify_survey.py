# /// script
# dependencies = ["pip"]
# ///
"""Run port.verify over real GPU wheels from the package index, and time it.

Each wheel is pinned by hash and its verdict is the one that docs/measurements/verify.md explains:
a verdict that differs ends the run with status 1. Wheels are kept in .cache/wheels. --quick leaves
out those above 50 MB, --speed all but the timing; --write puts the tables into the page.
"""

from __future__ import annotations

import compileall
import hashlib
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from port.errors import PortError
from port.verify import verify

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache/wheels"
PAGE = ROOT / "docs/measurements/verify.md"
QUICK_BYTES = 50_000_000
REPEATS = 5
SPEED = ("wheel", "MB", "best of 5 (s)", "median (s)", "CPU time, both processes (s)")
GLIBC = ("2_17", "2_24", "2_27", "2_28", "2_31", "2_34", "2_35")


@dataclass(frozen=True)
class Pinned:
    """A wheel of the survey and the codes that are explained for it."""

    name: str
    version: str
    megabytes: int
    sha256: str
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


WHEELS = (
    Pinned("bitsandbytes", "0.50.2", 43,
           "55348a9a4a21bfd99cf8c7b32fe67b4030ae5c2a05738e03c1747f65fa6ec283",
           ("V05", "V11"), ("V09", "V15")),
    Pinned("ctranslate2", "4.8.5", 43,
           "79a30a2c974530dbb5083f4922d28ffad87e08542f423aa91c53fbf4543cc35f",
           (), ("V18",)),
    Pinned("cupy-cuda12x", "14.2.0", 137,
           "5fe2366cc5c61a7ee4a527ce1e8951cb89092d0fb0b5830623cf114d1942c585",
           ("V01", "V11", "V14"), ("V18",)),
    Pinned("cupy-rocm-7-0", "14.2.0", 73,
           "8e824c1c2fc386e72fe8ae69ab7c273326b17650160400f8f4ea2c932189ed1a",
           ("V05", "V11", "V14"), ("V18",)),
    Pinned("cyllama-rocm", "0.2.18", 48,
           "16ee5bba138e2b5531a75e1230ed15f419b960afe56c66846afa549ebf1acb4b",
           ("V05",), ("V15", "V18")),
    Pinned("faiss-gpu-cu12", "1.14.1.post1", 48,
           "87e630faed349ba71e6c10e8340e93edf406bf22b42e08f097d7d3d64e16d0cb",
           ("V01",), ("V18",)),
    Pinned("hip-python", "10.0.0.0.1.2", 1,
           "5a3d06b5248024ee7fe38b69350024cb955c02928d93aa47d48e67e4c76b13e7", (), ("V20",)),
    Pinned("jax-cuda12-plugin", "0.10.2", 8,
           "76bbfece2f6effb4e8908eb8a5fbf1abbc1125de667683ec2ffba51c63dc57af",
           ("V05",), ("V01", "V18")),
    Pinned("jax-rocm7-plugin", "0.10.2", 4,
           "fc6c3f6641d99916ea1896353a0c27187f1fcddb811768d4607d7e78834571a3",
           ("V05",), ("V18",)),
    Pinned("nixl-cu12", "1.5.1", 69,
           "341d0dfa499f941c054614252f1d8047d1380e33f29c87707372ff5ec7d3779a",
           ("V01", "V02", "V05"), ("V15", "V18", "V22")),
    Pinned("onnxruntime-gpu", "1.31.1", 256,
           "e26c475fe361b2015f45b4b824bd13f0bb20204e59b62814e6f0acd5f3d491a6", ("V01", "V02")),
    Pinned("openmm-cuda-12", "8.6.1", 3,
           "7338c20f052bff983da8715a740b8191502283cbc7020382c1c60b4c572b7da8",
           ("V01", "V02", "V05", "V14"), ("V15",)),
    Pinned("openmm-hip-6", "8.6.1", 3,
           "5bc8afd4efc0d854100914e75a40905c06f4a8417ac940307bd92bd3841274fc",
           ("V05", "V14"), ("V15",)),
    Pinned("torchmonarch", "0.7.0", 93,
           "7959f93a26856ef1651a48afb37969aadb608f3b46d3c681483111c28cae57c8",
           ("V05", "V11", "V14", "V15"), ("V18",)),
    Pinned("warp-lang", "1.19.0", 149,
           "c797f5f4aa9925f676e20dd28e5416fee794499f3f3c0a5b66f2d4dfc2de9e32"),
    Pinned("xformers", "0.0.35", 3,
           "ccc73c7db9890224ab05f5fb60e2034f9e6c8672a10be0cf00e95cbbae3eda7c", ("V01",)),
)  # fmt: skip


def fetch(pinned: Pinned) -> Path:
    """The wheel's file, from the cache or the index; its hash is checked in either case."""
    folder = CACHE / pinned.name
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in folder.glob("*.whl"):
        with wheel.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == pinned.sha256:
                return wheel
        wheel.unlink()
    wanted = folder / "wanted.txt"
    wanted.write_text(
        f"{pinned.name}=={pinned.version} --hash=sha256:{pinned.sha256}\n", encoding="utf-8"
    )
    platforms = [f"--platform=manylinux_{version}_x86_64" for version in GLIBC]
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--require-hashes"]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", *options, *platforms),
            *("--platform=manylinux2014_x86_64", "--dest", str(folder)),
            *("--requirement", str(wanted)),
        ],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def judged(pinned: Pinned) -> tuple[tuple[str, ...], bool]:
    """A row of the table, and whether the verdict is the explained one."""
    wheel = fetch(pinned)
    started = time.perf_counter()
    try:
        report = verify(wheel)
    except PortError as error:
        return (pinned.name, pinned.version, "", "", f"{error}", "", ""), False
    seconds = time.perf_counter() - started
    found = {
        severity: tuple(
            sorted({c.code for c in report.checks if not c.ok and c.severity == severity})
        )
        for severity in ("error", "warning")
    }
    size = wheel.stat().st_size / 1e6
    row = (
        pinned.name,
        pinned.version,
        f"{size:.1f}",
        report.platform or "mixed",
        " ".join(found["error"]) or "none",
        " ".join(found["warning"]) or "none",
        f"{seconds:.2f}",
    )
    return row, (found["error"], found["warning"]) == (pinned.errors, pinned.warnings)


def timed(wheel: Path) -> tuple[str, ...]:
    """Wall time of the whole command on one wheel, start of the interpreter included.

    The modules are compiled before, as an installer leaves them.
    """
    compileall.compile_dir(ROOT / "port", quiet=1)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    seconds, used = [], []
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "port.verify", str(wheel)],
            stdout=subprocess.DEVNULL,
            check=False,
            cwd=ROOT,
            env=environment,
        )
        seconds.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    figures = (min(seconds), statistics.median(seconds), min(used))
    size = wheel.stat().st_size / 1e6
    return wheel.name, f"{size:.1f}", *(f"{figure:.2f}" for figure in figures)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def write(parts: dict[str, str]) -> None:
    """Replace the measured parts of the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, part in parts.items():
        mark = rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)"
        literal = part.replace("\\", r"\\")
        text = re.sub(mark, rf"\g<1>{literal}\g<2>", text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


def main() -> int:
    options = sys.argv[1:]
    quick = "--quick" in options
    chosen = [p for p in WHEELS if not quick or p.megabytes * 1e6 <= QUICK_BYTES]
    results = [] if "--speed" in options else [judged(pinned) for pinned in chosen]
    rows = [row for row, _ in results]
    head = ("wheel", "version", "MB", "platform", "errors", "warnings", "seconds")
    survey = table(head, rows)
    own = sorted((ROOT / "dist").glob("monarch_*.whl"))
    large = [fetch(p) for p in chosen if p.name == "torchmonarch"]
    speed = table(SPEED, [timed(w) for w in own + large])
    print(survey)
    print(speed)
    if "--write" in options:
        write({"speed": speed} | ({"survey": survey} if results else {}))
    odd = [row[0] for row, explained in results if not explained]
    if odd:
        print(f"verdicts that docs/measurements/verify.md does not explain: {', '.join(odd)}")
    return bool(odd)


if __name__ == "__main__":
    sys.exit(main())
