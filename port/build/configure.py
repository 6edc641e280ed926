"""From a request to scikit-build-core: the name, the CMake variables and the build info."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from port import architectures
from port.build import choose, toolchains
from port.build.info import BuildInfo
from port.errors import InputError
from port.toolkits import rocm_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from port.build.request import Request
    from port.build.toolchains import Toolchain

    Settings = Mapping[str, list[str] | str]


def be_patient() -> None:
    """On a busy machine `cmake --version` takes longer than the 5 seconds that scikit-build-core
    waits before it decides that there is no CMake.
    """
    from scikit_build_core import program_search  # noqa: PLC0415 - only builds need it

    program_search.BASE_TIMEOUT = 60


@contextlib.contextmanager
def prepared(
    hook: str, tree: Path, config_settings: Settings | None
) -> Iterator[tuple[Callable[..., str], dict[str, list[str] | str]]]:
    """The scikit-build-core hook and its settings, with the distribution's name in place."""
    import scikit_build_core.build as skbuild  # noqa: PLC0415 - only builds need it

    be_patient()
    request = choose.request(tree, os.environ)
    settings = dict(config_settings or {})
    if hook == "build_sdist":
        with _named(request, None):
            yield skbuild.build_sdist, settings
        return
    toolchain = None if request.platform == "cpu" else toolchains.find(request, os.environ)
    settings.update(_defaults(request, toolchain))
    if hook.startswith("build_"):
        chosen = _architectures(request, toolchain)
        settings.update(_definitions(request, toolchain, chosen, tree))
    with _named(request, toolchain):
        yield getattr(skbuild, hook), settings


@contextlib.contextmanager
def _named(request: Request, toolchain: Toolchain | None) -> Iterator[None]:
    """scikit-build-core reads a static name from pyproject.toml; ours depends on the platform."""
    from scikit_build_core.build import sdist, wheel  # noqa: PLC0415

    modules: tuple[Any, ...] = (sdist, wheel)
    plain = modules[0].get_standard_metadata

    def named(*arguments: Any, **options: Any) -> Any:
        metadata = plain(*arguments, **options)
        metadata.name = f"{choose.PREFIX}{request.platform}"
        if toolchain is not None and toolchain.soname is not None:
            major = toolchain.version.major
            build = f"(this build: ROCm {major}, {toolchain.soname})"
            metadata.description = f"{metadata.description} {build}"
            metadata.keywords = [*(metadata.keywords or []), f"rocm{major}"]
        return metadata

    for module in modules:
        module.get_standard_metadata = named
    try:
        yield
    finally:
        for module in modules:
            module.get_standard_metadata = plain


def _label(request: Request, toolchain: Toolchain | None) -> str:
    label = request.platform
    if toolchain is not None and toolchain.platform == "rocm":
        label = rocm_label(toolchain.version)
    return label if request.host == "system" else f"{label}-{request.host}"


def _defaults(request: Request, toolchain: Toolchain | None) -> dict[str, list[str] | str]:
    label = _label(request, toolchain)
    # One folder for each platform and interpreter, so that a second build is a warm one.
    return {
        "build-dir": f"build/{label}-{{state}}-{{wheel_tag}}",
    }


def _architectures(request: Request, toolchain: Toolchain | None) -> tuple[str, ...]:
    offered = toolchain.offered if toolchain else ()
    chosen = architectures.choose(request.platform, request.architectures, offered)
    devices = architectures.probe(request.platform, Path("/"))
    architectures.check_devices(chosen, devices, cross=request.cross)
    return chosen


def _definitions(
    request: Request,
    toolchain: Toolchain | None,
    chosen: tuple[str, ...],
    tree: Path,
) -> dict[str, list[str] | str]:
    values = {"GPU_PLATFORM": request.platform, "GPU_ARCHITECTURES": ";".join(chosen)}
    if toolchain is not None:
        values |= {
            "MONARCH_GPU_COMPILER": str(toolchain.compiler),
            "MONARCH_GPU_INCLUDE": str(toolchain.include),
            "MONARCH_GPU_LIBRARY": str(toolchain.library),
            "MONARCH_GPU_VERSION": str(toolchain.version),
            # The vendor's compiler takes the system's, whatever links its objects.
            "MONARCH_GPU_HOST_COMPILER": _host_compiler() if request.host == "system" else "c++",
        }
    info = _info(request, toolchain, chosen, tree)
    path = tree / "build" / f"info-{_label(request, toolchain)}" / "_build_info.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(info.render(), encoding="utf-8")
    values["MONARCH_BUILD_INFO"] = str(path)
    return {f"cmake.define.{name}": value for name, value in values.items()}


def _info(
    request: Request, toolchain: Toolchain | None, chosen: tuple[str, ...], tree: Path
) -> BuildInfo:
    with (tree / "pyproject.toml").open("rb") as stream:
        version = tomllib.load(stream)["project"]["version"]
    host = _first_line(_host_compiler(), "--version")
    common = {
        "platform": request.platform,
        "version": version,
        "architectures": chosen,
        "host_compiler": host,
        "revision": _revision(tree),
    }
    if toolchain is None:
        return BuildInfo(**common)
    return BuildInfo(
        **common,
        runtime_version=str(toolchain.version),
        runtime_soname=toolchain.soname or "",
        compiler=_version_line(toolchain),
        toolchain=toolchain.digest,
    )


def _host_compiler() -> str:
    """The C++ compiler that CMake will take."""
    return os.environ.get("CXX") or "c++"


def _version_line(toolchain: Toolchain) -> str:
    lines = _output(str(toolchain.compiler), "--version").splitlines()
    named = [line.strip() for line in lines if "version" in line or "release" in line]
    return " / ".join(named[:2])


def _first_line(*command: str) -> str:
    return (_output(*command).splitlines() or [""])[0].strip()


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"{command[0]} cannot be run: {error.strerror}") from None
    return done.stdout


def _revision(tree: Path) -> str:
    """The commit of a checkout, with `-modified` for a changed one; an sdist carries none."""
    if not (tree / ".git").exists():
        return ""
    git = ("git", "-C", str(tree))
    head = _output(*git, "rev-parse", "HEAD").strip()
    changed = _output(*git, "status", "--porcelain", "--untracked-files=no").strip()
    return f"{head}-modified" if head and changed else head
