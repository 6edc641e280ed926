"""One HIP runtime in the process, whatever is imported first.

A ROCm wheel needs `libamdhip64.so.N` and does not bring it. torch for ROCm may bring its own, under
the file name `libamdhip64.so`, which the loader does not find for others; a second copy in the
process breaks streams and memory of the first. So the copy to share is chosen here, in order:

1. one that is already mapped,
2. the one of the installed torch, if that brings one,
3. the one of AMD's Python packages (`_rocm_sdk_core`),
4. the one that the loader finds by itself,

and is loaded by absolute path before the module that needs it. The loader then takes that copy for
the module and for torch alike, since it knows it by soname and by inode. torch is not imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monarch.errors import RuntimeLibraryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STEM = "libamdhip64.so"

_MAPPED = re.compile(r"^\S+ \S+ \S+ (\S+) (\d+) +(/.*?)(?: \(deleted\))?$", re.MULTILINE)
_TORCH_VERSION = re.compile(r"^hip\b[^=\n]*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Copy:
    """A HIP runtime library: where it is, who brings it, and its release where it can be told."""

    path: Path
    source: str
    soname: str
    release: str

    def __str__(self) -> str:
        release = f"ROCm {self.release}, " if self.release else ""
        return f"{self.path} ({release}{self.soname}, from {self.source})"


def mapped() -> list[Path]:
    """HIP runtime libraries mapped into this process; one file counts once, however named."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    found = {
        (device, inode): Path(path)
        for device, inode, path in _MAPPED.findall(maps)
        if Path(path).name.startswith(STEM)
    }
    return list(found.values())


def candidate() -> Copy | None:
    """The copy to share, of the first three kinds; None leaves it to the loader."""
    present = mapped()
    if present:
        return _copy(present[0], "this process")
    for package in ("torch", "_rocm_sdk_core"):
        folder = _package_folder(package)
        library = _library_in(folder / "lib") if folder else None
        if folder and library:
            return _copy(library, package, _torch_release(folder))
    return None


@contextlib.contextmanager
def one_hip_runtime(soname: str, release: str = "") -> Iterator[None]:
    """Import a module that needs `soname` inside this context.

    `soname` and `release` are what the module was built against.

    Raises:
        RuntimeLibraryError: the copy to share is of another major release; no copy can be loaded;
            the module does not load with the copy; the process holds two copies afterwards.

    """
    _refuse_two(mapped(), "before the import")
    copy = candidate()
    built = f"ROCm {release} ({soname})" if release else soname
    if copy and copy.soname != soname:
        raise RuntimeLibraryError(
            f"this monarch-rocm was built for {built}, and the HIP runtime to use here is {copy}. "
            f"One process holds one HIP runtime: install a monarch-rocm for {copy.soname}, or "
            f"make {copy.source} bring {soname}"
        )
    try:
        ctypes.CDLL(str(copy.path) if copy else soname)
    except OSError as error:
        raise RuntimeLibraryError(_not_loaded(copy, soname, built, str(error))) from None
    try:
        yield
    except ImportError as error:
        used = copy or next((_copy(path, "the loader") for path in mapped()), None)
        raise RuntimeLibraryError(
            f"the module built for {built} does not load with {used or 'no HIP runtime'}: {error}"
        ) from error
    _refuse_two(mapped(), "now")


def _refuse_two(paths: list[Path], when: str) -> None:
    if len(paths) > 1:
        raise RuntimeLibraryError(
            f"this process holds {len(paths)} HIP runtimes {when}: "
            f"{', '.join(str(path) for path in paths)}. Streams and memory of one are unknown to "
            "the other; import monarch.gpu before whatever loads the second, or remove it from "
            "LD_LIBRARY_PATH"
        )


def _not_loaded(copy: Copy | None, soname: str, built: str, reason: str) -> str:
    if copy:
        return f"{copy} cannot be loaded: {reason}. Repair or remove what brings it"
    places = ", ".join(searched(os.environ))
    unused = [path for path in installed_elsewhere(soname, os.environ) if path.is_file()]
    if unused:
        return (
            f"{soname} is installed at {unused[0]}, where the loader does not look ({reason}). "
            f"Add {unused[0].parent} to LD_LIBRARY_PATH, or to /etc/ld.so.conf.d and run ldconfig"
        )
    return (
        f"{soname} was not found; this monarch-rocm was built for {built}. Searched: {places}. "
        f"Install ROCm {soname.rpartition('.')[2]} (Debian: libamdhip64-"
        f"{soname.rpartition('.')[2]}; others: AMD's packages), or a torch for it"
    )


def searched(environ: Mapping[str, str]) -> list[str]:
    """The places where a HIP runtime is looked for, in order, in words."""
    return [
        "this process",
        "torch/lib",
        "_rocm_sdk_core/lib",
        f"LD_LIBRARY_PATH={environ.get('LD_LIBRARY_PATH', '')}",
        "the loader's cache and folders",
    ]


def installed_elsewhere(soname: str, environ: Mapping[str, str]) -> list[Path]:
    """Where ROCm puts the library; the loader looks there only when it was told to."""
    homes = [environ.get(name, "") for name in ("ROCM_PATH", "ROCM_HOME")]
    homes.append("/opt/rocm")
    return [Path(home) / "lib" / soname for home in dict.fromkeys(homes) if home]


def _package_folder(name: str) -> Path | None:
    """The folder of an installed package, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations))) if locations else None


def _library_in(folder: Path) -> Path | None:
    bare = folder / STEM
    if bare.is_file():
        return bare
    return next(iter(sorted(folder.glob(f"{STEM}.*"))), None)


def _copy(path: Path, source: str, release: str = "") -> Copy:
    return Copy(path, source, _soname(path), release or _release_in_name(path))


def _release_in_name(path: Path) -> str:
    """7.0 of `libamdhip64.so.7.0.51831`, which the other names are links to."""
    numbers = path.resolve().name.removeprefix(STEM).strip(".").split(".")
    return ".".join(numbers[:2]) if len(numbers) > 1 else ""


def _torch_release(torch: Path) -> str:
    try:
        text = (torch / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = _TORCH_VERSION.search(text)
    return ".".join(found[1].split(".")[:2]) if found else ""


def _soname(path: Path) -> str:
    """The soname written in a library; its file name where it has none or is no library."""
    from elftools.common.exceptions import ELFError  # noqa: PLC0415 - only for the GPU module
    from elftools.elf.dynamic import DynamicSection  # noqa: PLC0415
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415

    try:
        with path.open("rb") as stream:
            for section in ELFFile(stream).iter_sections():
                if isinstance(section, DynamicSection):
                    tags: Iterator[Any] = section.iter_tags("DT_SONAME")
                    for tag in tags:
                        return str(tag.soname)
    except (OSError, ELFError):
        pass
    return path.name
