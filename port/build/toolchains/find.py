"""Choose the toolchain of a build: the installed one, else packages; checked against a floor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from port.build.toolchains import pypi, sysroot
from port.build.toolchains.model import Toolchain, defined
from port.errors import EnvironmentMissingError, InputError
from port.toolkits import FLOORS, Machine, Toolkit, label, search

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from port.build.request import Request
    from port.toolkits import Searched


def _print(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def find(
    request: Request,
    environ: Mapping[str, str],
    *,
    root: Path = Path("/"),
    say: Callable[[str], None] = _print,
) -> Toolchain:
    """The toolchain for `request`; may fetch packages, and then says so.

    Raises:
        EnvironmentMissingError: none is installed and none can be fetched; lists what was searched.
        InputError: the toolkit found is older than the floor, or of another release than asked for.

    """
    installed, searched = _installed(request, environ, root)
    if installed is not None:
        chosen = _of_toolkit(installed)
    elif request.source == "installed":
        raise EnvironmentMissingError(_nothing_found(request.platform, searched))
    elif request.platform == "cuda":
        chosen = pypi.toolchain(_nothing_found("cuda", searched))
    else:
        try:
            chosen = _of_sysroot(request, environ, say)
        except EnvironmentMissingError as error:
            places = _nothing_found("rocm", searched)
            raise EnvironmentMissingError(f"{places}\n{error}") from None
    floor = FLOORS[request.platform]
    if chosen.version < floor:
        name = label(request.platform)
        raise InputError(
            f"{name} {chosen.version} ({chosen.origin}): the floor is {name} {floor}; "
            f"install a newer one, or set GPU_TOOLCHAIN=packages to build with packages"
        )
    for place in searched:
        if installed is None and place.by in environ and place.path is not None:
            say(f"{place.by}={place.path}: {place.result}; taken instead: {chosen.origin}")
    return chosen


def requirements(
    request: Request, environ: Mapping[str, str], *, root: Path = Path("/")
) -> list[str]:
    """What the build needs from PyPI: CUDA's distributions, when no installed toolkit serves."""
    if request.platform != "cuda" or request.source == "installed":
        return []
    installed, _ = _installed(request, environ, root)
    return [] if installed is not None else list(pypi.REQUIREMENTS)


def _installed(
    request: Request, environ: Mapping[str, str], root: Path
) -> tuple[Toolkit | None, tuple[Searched, ...]]:
    if request.source == "packages":
        return None, ()
    toolkits, searched = search(Machine(environ, root))
    mine = [t for t in toolkits if t.kind == request.platform]
    usable = [t for t in mine if t.compiler is not None and t.library is not None]
    if request.rocm is not None:
        usable = [t for t in usable if t.version and _is_release(t.version, request.rocm)]
    own = tuple(place for place in searched if place.kind == request.platform)
    return (usable[0] if usable else None), own


def _is_release(version: Version, release: str) -> bool:
    return f"{version.major}.{version.minor}" == release


def _nothing_found(platform: str, searched: tuple[Searched, ...]) -> str:
    places = "".join(f"\n  {s.by}: {s.path or '-'}: {s.result}" for s in searched)
    variable = {"cuda": "CUDA_HOME", "rocm": "ROCM_PATH"}[platform]
    return (
        f"no {label(platform)} toolkit with a compiler was found; searched:"
        f"{places or ' nothing (GPU_TOOLCHAIN=packages hides installed toolkits)'}\n"
        f"install one, or set {variable} to its folder"
    )


def _of_toolkit(toolkit: Toolkit) -> Toolchain:
    if toolkit.compiler is None or toolkit.library is None:  # pragma: no cover - filtered before
        raise EnvironmentMissingError(f"{toolkit.root}: incomplete toolkit")
    name = {"cuda": "libcudart_static.a", "rocm": "libamdhip64.so"}[toolkit.kind]
    library = toolkit.library / name
    if not library.is_file():
        raise EnvironmentMissingError(
            f"{name} is not in {toolkit.library}; install the development files of "
            f"{label(toolkit.kind)} {toolkit.version}"
        )
    return Toolchain(
        platform=toolkit.kind,
        version=_version(toolkit),
        compiler=toolkit.compiler,
        include=toolkit.include,
        library=library,
        soname=soname(library) if toolkit.kind == "rocm" else None,
        offered=toolkit.architectures,
        origin=f"installed in {toolkit.root}, found by {toolkit.found_by}",
    )


def _version(toolkit: Toolkit) -> Version:
    if toolkit.version is None:
        raise EnvironmentMissingError(
            f"{toolkit.root}: its headers name no version; reinstall that toolkit"
        )
    return toolkit.version


def _of_sysroot(
    request: Request, environ: Mapping[str, str], say: Callable[[str], None]
) -> Toolchain:
    if request.rocm is None:
        made = sysroot.native(say, environ)
    else:
        made = sysroot.matching(request.rocm, say, environ)
    libraries = made.libraries
    library = libraries / "libamdhip64.so"
    header = made.folder / "include/hip/hip_version.h"
    parts = [defined(header, f"HIP_VERSION_{part}") for part in ("MAJOR", "MINOR", "PATCH")]
    return Toolchain(
        platform="rocm",
        version=Version(".".join(map(str, parts))),
        compiler=made.folder / "bin" / "hipcc",
        include=made.folder / "include",
        library=library,
        soname=soname(library),
        offered=made.offered,
        origin=f"Debian {made.suite} packages in {made.folder}",
        digest=made.digest,
        loadable=() if made.foreign else (libraries,),
    )


def soname(library: Path) -> str:
    """The DT_SONAME of a shared library.

    Raises:
        EnvironmentMissingError: it is no shared library, or has no soname.

    """
    from elftools.common.exceptions import ELFError  # noqa: PLC0415 - the backend stays light
    from elftools.elf.dynamic import DynamicSection  # noqa: PLC0415
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415

    try:
        with library.open("rb") as stream:
            dynamic = ELFFile(stream).get_section_by_name(".dynamic")
            if isinstance(dynamic, DynamicSection):
                for tag in dynamic.iter_tags("DT_SONAME"):
                    return str(getattr(tag, "soname"))  # noqa: B009 - pyelftools sets it for this tag alone
    except (OSError, ELFError) as error:
        raise EnvironmentMissingError(f"{library}: {error}; reinstall the toolkit") from error
    raise EnvironmentMissingError(f"{library}: no DT_SONAME; reinstall the toolkit")
