"""The command line of `python -m port.hipify`."""

from __future__ import annotations

from pathlib import Path

import click

from port.errors import ExitCode

_EPILOG = """
Exit status: 0 nothing is left (warnings and notes do not count), 1 something is left and was
reported, or --check found a difference, 2 wrong usage or an input that cannot be read, 3 a limit
was hit (a full disk), 70 a bug of this tool, 130 interrupted.
"""


def _print_cmake_dir(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(Path(__file__).parents[1] / "cmake")
        context.exit()


@click.command(epilog=_EPILOG)
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the converted tree; every file gets an output at the same relative place.",
)
@click.option(
    "--rocm",
    "rocm",
    default="6.4",
    show_default=True,
    metavar="X.Y",
    help="HIP release whose names may be emitted, 5.2 or newer.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 where the output would change.")
@click.option(
    "--diff", "show_diff", is_flag=True, help="Print a unified diff of source and output."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option(
    "--sarif",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write SARIF 2.1.0 to FILE.",
    metavar="FILE",
)
@click.option(
    "--map",
    "map_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="JSON or TOML table of names and headers that go before the built-in map.",
)
@click.option(
    "--torch-map",
    is_flag=True,
    help="Also take names from the tables of the torch that is installed (never imported else).",
)
@click.option(
    "--ext",
    "extensions",
    multiple=True,
    metavar=".SUFFIX",
    help="Also convert files with this suffix, for example .pyx. May be repeated.",
)
@click.option(
    "-D",
    "defines",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A macro that the build defines. May be repeated.",
)
@click.option(
    "-I",
    "include_dirs",
    multiple=True,
    metavar="DIR",
    help="A folder where the project's own headers are found. May be repeated.",
)
@click.option(
    "--headers",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Emit only names that the HIP headers in DIR hold, for the release they are of.",
)
@click.option(
    "--cmake-dir",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_cmake_dir,
    help="Print the folder of PortHipify.cmake (function port_hipify_target) and exit.",
)
def main(
    source: Path,
    output: Path,
    rocm: str,
    check: bool,
    show_diff: bool,
    as_json: bool,
    sarif: Path | None,
    map_file: Path | None,
    torch_map: bool,
    extensions: tuple[str, ...],
    defines: tuple[str, ...],
    include_dirs: tuple[str, ...],
    headers: Path | None,
) -> int:
    """Convert the CUDA C++ in SOURCE, a folder or one file, to HIP.

    Every CUDA name that has no counterpart is reported with its place and what to do. SOURCE is
    never written to.
    """
    from port.hipify import api, report  # noqa: PLC0415 - `--help` needs none of it
    from port.hipify import sarif as sarif_format  # noqa: PLC0415
    from port.hipify.options import Options  # noqa: PLC0415

    options = Options(
        rocm,
        dict(_define(each) for each in defines),
        include_dirs,
        tuple(each if each.startswith(".") else f".{each}" for each in extensions),
        str(map_file) if map_file else None,
        torch_map,
        str(headers) if headers else None,
    )
    outcome = api.convert(source, output, options, check=check)
    if sarif is not None:
        sarif_format.write(outcome.conversion.findings, sarif)
    if as_json:
        click.echo(report.as_json(outcome.conversion, ok=outcome.ok))
    else:
        for line in report.lines(outcome, diff=show_diff):
            click.echo(line)
    return ExitCode.CLEAN if outcome.ok else ExitCode.FINDINGS


def _define(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value or "1"
