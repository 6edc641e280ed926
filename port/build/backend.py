"""The PEP 517 and PEP 660 backend of this source tree: scikit-build-core, for one GPU platform.

It names the distribution `monarch-$GPU_PLATFORM`, finds the toolchain, and hands CMake what it
found. Nothing is written to the source tree but the build folder, and a file appears in the output
folder only when it is complete.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from port.errors import PortError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Settings = dict[str, list[str] | str] | None

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    return _hook("build_wheel", wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    return _hook("build_editable", wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    return _hook("build_sdist", sdist_directory, config_settings)


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    return _hook("prepare_metadata_for_build_wheel", metadata_directory, config_settings)


def prepare_metadata_for_build_editable(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    return _hook("prepare_metadata_for_build_editable", metadata_directory, config_settings)


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return _requires("get_requires_for_build_wheel", config_settings)


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return _requires("get_requires_for_build_editable", config_settings)


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    import scikit_build_core.build as skbuild  # noqa: PLC0415 - the backend stays light

    return skbuild.get_requires_for_build_sdist(config_settings)


def _requires(hook: str, config_settings: Settings) -> list[str]:
    import scikit_build_core.build as skbuild  # noqa: PLC0415

    from port.build import choose, configure, toolchains  # noqa: PLC0415

    configure.be_patient()
    with _errors():
        request = choose.request(Path.cwd(), os.environ)
        own = toolchains.requirements(request, os.environ)
    wanted: list[str] = getattr(skbuild, hook)(config_settings)
    return [*wanted, *own]


def _hook(hook: str, output: str, config_settings: Settings, *more: str | None) -> str:
    from port.build import configure  # noqa: PLC0415

    with _errors(), configure.prepared(hook, Path.cwd(), config_settings) as (call, settings):
        if hook.startswith("prepare_"):
            return call(output, settings)
        with _alone(hook):
            return _into(Path(output), lambda folder: call(str(folder), settings, *more))


def _alone(hook: str) -> contextlib.AbstractContextManager[None]:
    """Builds of one tree take turns, whoever asks for them: they share its build folder."""
    from port.build.cache import locked  # noqa: PLC0415

    if hook == "build_sdist":
        return contextlib.nullcontext()
    return locked(Path.cwd() / "build" / ".lock-backend")


def _into(output: Path, make: Callable[[Path], str]) -> str:
    """Run `make` on a folder inside `output`, then move the one file it names into `output`."""
    output.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=".building-", dir=output))
    try:
        name = make(place)
        (place / name).replace(output / name)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return name


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Ends the build with one line instead of a traceback, and with the status of the error."""
    try:
        yield
    except PortError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.stderr.flush()
        raise SystemExit(int(error.exit_code)) from None
