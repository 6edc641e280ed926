"""A private ROCm made of Debian packages: fetched, unpacked, recorded, cached; no root needed.

The folder looks like this:

    root/          the packages, unpacked
    bin/run        runs a program of root/ with the folders and the AMD platform fixed
    bin/hipcc      the unpacked hipcc, by way of bin/run
    include/       the HIP headers alone, so that no foreign libc header is ever in sight
    record.json    what was fetched: suite, packages, versions, SHA-256
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from port.build.cache import cache_folder, entry
from port.build.toolchains import foreign
from port.build.toolchains.apt import Apt, Package, available, unpack
from port.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FORMAT = 2
"""Changes when the layout does, so that an older cache entry is not taken for a new one."""

PACKAGES = ("hipcc", "libamdhip64-dev", "libhsa-runtime-dev")
HEADERS = ("hip", "hsa", "hsakmt", "amd_comgr")
SUITES = ("trixie", "forky", "sid")
"""Suites searched for a release that the machine's own suite does not have, oldest first."""


@dataclass(frozen=True, slots=True)
class Sysroot:
    """An unpacked ROCm. `suite` is the Debian suite, `digest` the SHA-256 over its packages."""

    folder: Path
    suite: str
    release: str
    digest: str
    foreign: bool
    offered: tuple[str, ...]

    @property
    def libraries(self) -> Path:
        return self.folder / "root/usr/lib" / _multiarch()


def native(say: Callable[[str], None], environ: Mapping[str, str]) -> Sysroot:
    """The ROCm of the machine's own suite, fetched on first use.

    Raises:
        EnvironmentMissingError: the machine is no Debian, or its mirror has no HIP.

    """
    _require_debian()
    suite = _machine_suite()
    folder = cache_folder(environ) / f"rocm-{suite}-{platform.machine()}-{FORMAT}"

    def fill(place: Path) -> None:
        say(f"fetching ROCm from the packages of {suite} into {folder} (once)")
        apt = Apt(place / "apt")
        apt.prepare()
        _fetch(apt, place, suite, PACKAGES, foreign_root=False)

    return _open(entry(folder, fill))


def matching(release: str, say: Callable[[str], None], environ: Mapping[str, str]) -> Sysroot:
    """The ROCm release asked for: the machine's suite where it has it, else a newer suite.

    Raises:
        EnvironmentMissingError: as `native` and `newer`.

    """
    _require_debian()
    folder = _newer_folder(release, environ)
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as scratch:
            apt = Apt(Path(scratch))
            apt.prepare()
            if _has(apt.versions("libamdhip64-dev"), release):
                return native(say, environ)
    return newer(release, say, environ)


def newer(release: str, say: Callable[[str], None], environ: Mapping[str, str]) -> Sysroot:
    """A ROCm release that a newer suite has, with that suite's compiler in its own root.

    Raises:
        EnvironmentMissingError: no suite has the release, or its compiler cannot be started.

    """
    _require_debian()
    folder = _newer_folder(release, environ)

    def fill(place: Path) -> None:
        say(f"looking for ROCm {release} in {', '.join(SUITES)}")
        own = Apt(place / "apt")
        own.prepare()
        apt, suite = _suite_with(release, own.mirror(), place)
        say(f"fetching ROCm {release} from the packages of {suite} into {folder} (once)")
        _fetch(apt, place, suite, (*PACKAGES, *foreign.PACKAGES), foreign_root=True)

    sysroot = _open(entry(folder, fill))
    foreign.check(sysroot.folder)
    return sysroot


def _newer_folder(release: str, environ: Mapping[str, str]) -> Path:
    return cache_folder(environ) / f"rocm{release}-{platform.machine()}-{FORMAT}"


def _has(versions: Sequence[str], release: str) -> bool:
    return any(version.split(":")[-1].startswith(f"{release}.") for version in versions)


def _require_debian() -> None:
    if not available():
        raise EnvironmentMissingError(
            "Debian's packages cannot be fetched either: this machine lacks one of apt-get, "
            "apt-cache and dpkg-deb"
        )


def _machine_suite() -> str:
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        if line.startswith("VERSION_CODENAME="):
            return shlex.split(line.partition("=")[2])[0]
    return "unnamed"


def _suite_with(release: str, mirror: str, place: Path) -> tuple[Apt, str]:
    seen = []
    empty = place / "apt" / "no-status"
    empty.touch()
    for suite in SUITES:
        line = f"deb [signed-by={foreign.keyring()}] {mirror} {suite} main\n"
        apt = Apt(place / "apt" / suite, sources=line, status=empty)
        apt.prepare()
        versions = apt.versions("libamdhip64-dev")
        if _has(versions, release):
            return apt, suite
        seen.append(f"{suite}: {', '.join(versions) or 'none'}")
    raise EnvironmentMissingError(
        f"ROCm {release}: no Debian suite has it ({'; '.join(seen)}); ask for one of these "
        "releases, or install ROCm and name it in ROCM_PATH"
    )


def _fetch(
    apt: Apt, place: Path, suite: str, packages: Sequence[str], *, foreign_root: bool
) -> None:
    closure = apt.closure(packages)
    if not closure:
        raise EnvironmentMissingError(
            f"apt says that {', '.join(packages)} are installed, but no ROCm was found below /usr; "
            "reinstall them (apt-get install --reinstall libamdhip64-dev hipcc)"
        )
    archives = apt.download(closure, place / "archives")
    hashes = {archive.name: _sha256(archive) for archive in archives}
    unpack(archives, place / "root")
    shutil.rmtree(place / "archives")
    shutil.rmtree(place / "apt")
    (place / "include").mkdir()
    for name in HEADERS:
        if (place / "root/usr/include" / name).is_dir():
            (place / "include" / name).symlink_to(Path("../root/usr/include") / name)
    _write_programs(place, foreign.RUN if foreign_root else NATIVE_RUN)
    record = {
        "schema": FORMAT,
        "suite": suite,
        "release": _release(closure),
        "foreign": foreign_root,
        "offered": _offered(place),
        "packages": [{"name": p.name, "version": p.version} for p in closure],
        "archives": hashes,
        "digest": hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest(),
    }
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    (place / "record.json").write_text(text, encoding="utf-8")


def _release(closure: Sequence[Package]) -> str:
    version = next(p.version for p in closure if p.name == "libamdhip64-dev")
    return version.split(":")[-1].split("-")[0]


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


NATIVE_RUN = """#!/bin/sh
# hipcc guesses its platform and its folders; here it is told.
top=$(CDPATH= cd -- "$(dirname -- "$0")/../root/usr" && pwd -P) || exit 1
libraries="$top/lib/@MULTIARCH@"
export HIP_PLATFORM=amd HIP_COMPILER=clang HIP_RUNTIME=rocclr
export ROCM_PATH="$top" HIP_PATH="$top" HIP_CLANG_PATH="$top/lib/@LLVM@/bin"
export DEVICE_LIB_PATH="$top@BITCODE@" HIP_DEVICE_LIB_PATH="$top@BITCODE@"
export PERL5LIB="$top/share/perl5"
export LD_LIBRARY_PATH="$libraries:$top/lib/@LLVM@/lib"
program=$1; shift
exec "$top$program" "$@"
"""

_HIPCC = """#!/bin/sh
exec "$(dirname -- "$0")/run" /bin/hipcc "$@"
"""


def _write_programs(place: Path, run: str) -> None:
    (place / "bin").mkdir()
    run = (
        run.replace("@MULTIARCH@", _multiarch())
        .replace("@LLVM@", _llvm(place).name)
        .replace("@BITCODE@", _bitcode(place))
    )
    for name, text in (("run", run), ("hipcc", _HIPCC)):
        (place / "bin" / name).write_text(text, encoding="utf-8")
        (place / "bin" / name).chmod(0o755)


def _llvm(place: Path) -> Path:
    """The folder of the compiler that hipcc is for; its number is in hipcc's own text."""
    folders = sorted((place / "root/usr/lib").glob("llvm-*/bin/clang"))
    if not folders:
        raise EnvironmentMissingError("the hipcc package brought no clang; the mirror is damaged")
    return folders[-1].parents[1]


def _bitcode(place: Path) -> str:
    """The folder of the device libraries, seen from usr; Debian has moved it more than once."""
    found = sorted((place / "root/usr/lib").glob("**/ockl.bc"))
    if not found:
        raise EnvironmentMissingError(
            "the packages brought no device libraries (ockl.bc); the mirror is damaged"
        )
    return f"/{found[-1].parent.relative_to(place / 'root/usr')}"


def _offered(place: Path) -> list[str]:
    """Architectures that the compiler knows and that device libraries are there for."""
    clang = f"/lib/{_llvm(place).name}/bin/clang"
    ask = ["--target=amdgcn-amd-amdhsa", "-nogpulib", "-print-supported-cpus"]
    done = subprocess.run(
        [str(place / "bin/run"), clang, *ask],
        capture_output=True,
        text=True,
        check=False,
    )
    known = set(re.findall(r"^\s+(gfx[0-9a-f]+)$", done.stdout + done.stderr, re.MULTILINE))
    prefix = "oclc_isa_version_"
    files = (place / "root/usr/lib").glob(f"**/{prefix}*.bc")
    return sorted(known & {f"gfx{file.stem.removeprefix(prefix)}" for file in files})


def _multiarch() -> str:
    return f"{platform.machine()}-linux-gnu"


def _open(folder: Path) -> Sysroot:
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    return Sysroot(
        folder=folder,
        suite=record["suite"],
        release=record["release"],
        digest=record["digest"],
        foreign=record["foreign"],
        offered=tuple(record["offered"]),
    )
