"""`python -m port.build`: make wheels, and tell what a build needs."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.version import InvalidVersion, Version

from port.build import choose, toolchains, wheel, zig
from port.build.request import SOURCES, Request
from port.cli import run
from port.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--tree", default=".", type=click.Path(exists=True, path_type=Path)),
        click.option("--platform", help="cpu, cuda or rocm; default: GPU_PLATFORM, else detected."),
        click.option("--arch", help="Architectures, such as sm_90,sm_100 or gfx942."),
        click.option("--toolchain", type=click.Choice(SOURCES), help="Where it may come from."),
        click.option("--rocm", help="A ROCm release, such as 6.4."),
        click.option("--cross", is_flag=True, help="Build for GPUs that this machine lacks."),
        click.option("--release", is_flag=True, help="For an index: the oldest tag there is."),
    ):
        function = option(function)
    return function


def _request(
    tree: Path,
    *,
    platform: str | None,
    arch: str | None,
    toolchain: str | None,
    rocm: str | None,
    cross: bool,
    release: bool,
) -> Request:
    given = {
        "GPU_PLATFORM": platform,
        "GPU_ARCHITECTURES": arch,
        "GPU_TOOLCHAIN": toolchain,
        "GPU_ROCM_RELEASE": _release(rocm),
        "GPU_CROSS_BUILD": "1" if cross else None,
    }
    environ = {**os.environ, **{name: value for name, value in given.items() if value}}
    request = choose.request(tree, environ)
    return replace(request, release=release, host="zig" if release else request.host)


def _release(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        version = Version(text)
    except InvalidVersion:
        raise InputError(f"--rocm {text}: not a release; wanted one such as 6.4") from None
    return f"{version.major}.{version.minor}"


@click.group(name="port.build")
def command() -> None:
    """Build wheels of this source tree."""


@command.command(name="wheel")
@_options
@click.option("--output", type=click.Path(path_type=Path), help="Default: dist, or dist/rocmN.")
def wheel_command(output: Path | None, tree: Path, **options: Any) -> None:
    """Build, repair and verify a wheel."""
    request = _request(tree, **options)
    wheel.make(tree.resolve(), request, output or tree / _folder(request), _say)


@command.command(name="requirements")
@_options
def requirements_command(tree: Path, **options: Any) -> None:
    """Print what has to be installed from PyPI for a build, one requirement a line."""
    request = _request(tree, **options)
    with (tree / "pyproject.toml").open("rb") as stream:
        own = tomllib.load(stream)["build-system"]["requires"]
    extra = [zig.REQUIREMENT] if request.host == "zig" else []
    for line in (*own, *toolchains.requirements(request, os.environ), *extra):
        click.echo(line)


@command.command(name="runtime-path")
@_options
def runtime_path_command(tree: Path, **options: Any) -> None:
    """Print the folders that hold the GPU runtime where the loader would not find it by itself."""
    request = _request(tree, **options)
    if request.platform != "cpu":
        found = toolchains.find(request, os.environ, say=_say)
        click.echo(":".join(map(str, found.loadable)))


@command.command(name="output")
@_options
def output_command(tree: Path, **options: Any) -> None:
    """Print the folder into which `wheel` would write."""
    click.echo(tree / _folder(_request(tree, **options)))


def _folder(request: Request) -> Path:
    if request.rocm is None:
        return Path("dist")
    return Path("dist") / f"rocm{Version(request.rocm).major}"


def _say(message: str) -> None:
    click.echo(f"port.build: {message}", err=True)


if __name__ == "__main__":
    run(command)
