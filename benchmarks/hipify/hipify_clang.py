"""hipify-clang of Debian (component contrib): fetched with what it links, run in a root of its own.

Its compiler wants a newer C library than Debian 12 has, so that it runs in a mount namespace and a
changed root, which takes root. Nothing is installed.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from corpus import CorpusError
from tools import SUFFIXES, Run, cpu_seconds

from port.build.cache import entry
from port.build.toolchains import apt, foreign

if TYPE_CHECKING:
    from pathlib import Path

    from corpus import Project
    from toolchain import Toolchain

SUITE = "sid"
_LLVM = "21"  # what the package is built with
_PACKAGES = (
    *("hipify-clang", f"libclang-common-{_LLVM}-dev", "libc6-dev", "libstdc++-14-dev"),
    *("base-files", "coreutils", "dash"),
)
_RESOURCES = f"/usr/lib/llvm-{_LLVM}/lib/clang/{_LLVM}"
_LIMIT_S = 120
_RUN = """#!/bin/sh
# Sees the machine's own folders at the same paths, inside the newer root.
top=$(CDPATH= cd -- "$(dirname -- "$0")/root" && pwd -P) || exit 1
exec unshare --mount --propagation private /bin/sh -c '
top=$1; shift
for seen in /*; do
  case $seen in /bin|/sbin|/lib*|/usr|/etc|/var|/boot|/lost+found) continue ;; esac
  [ -d "$seen" ] && [ ! -L "$seen" ] || continue
  mkdir -p "$top$seen" && mount --rbind "$seen" "$top$seen" || exit 1
done
exec chroot "$top" /usr/bin/env -i HOME=/ LC_ALL=C PATH=/usr/bin:/bin "$@"
' sh "$top" "$@"
"""


def bring(cache: Path) -> Path:
    """The program that runs a command of the root in which hipify-clang is.

    Raises:
        CorpusError: it does not start here, and what it said.

    """

    def fill(place: Path) -> None:
        own = apt.Apt(place / "own")
        own.prepare()
        empty = place / "no-status"
        empty.touch()
        line = f"deb [signed-by={foreign.keyring()}] {own.mirror()} {SUITE} main contrib\n"
        source = apt.Apt(place / "apt", sources=line, status=empty)
        source.prepare()
        archives = source.download(source.closure(_PACKAGES), place / "archives")
        apt.unpack(archives, place / "root")
        for name in ("own", "apt", "archives"):
            shutil.rmtree(place / name)
        (place / "run").write_text(_RUN)
        (place / "run").chmod(0o755)

    run = entry(cache / f"hipify-clang-{SUITE}", fill) / "run"
    done = subprocess.run(
        [str(run), "hipify-clang", "--version"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CorpusError(f"hipify-clang does not start: {(done.stderr or done.stdout)[-300:]}")
    return run


def convert(
    project: Project, tree: Path, top: Path, out: Path, program: Path, compilers: Toolchain
) -> Run:
    """Each file that names CUDA, from the sources as they are into a tree of the same shape.

    A file for which the tool gives nothing stays as it was.
    """
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(top, out)
    outputs = {str(p.relative_to(out)): p for p in out.rglob("*") if p.is_file()}
    start, status = cpu_seconds(), 0
    for relative, path in outputs.items():
        if path.suffix not in SUFFIXES:
            continue
        target = path.with_name(path.name + ".new")
        command = [str(program), "hipify-clang", str(top / relative), "-o", str(target)]
        command += ["--default-preprocessor", f"--cuda-path={compilers.cuda}"]
        command += [f"--clang-resource-directory={_RESOURCES}", "--", "-nocudalib"]
        command += compilers.search(project, tree, top, hip=None)
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=_LIMIT_S)
            status = max(status, done.returncode)
        except subprocess.TimeoutExpired:
            status = max(status, 124)
        if target.is_file() and target.stat().st_size:
            target.replace(path)
        target.unlink(missing_ok=True)
    return Run(out, outputs, cpu_seconds() - start, status)
