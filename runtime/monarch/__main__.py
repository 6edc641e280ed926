"""`python -m monarch`, and the console script `monarch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monarch import doctor
from monarch._cli import serve
from monarch.errors import MonarchError

if TYPE_CHECKING:
    from typing import NoReturn


def _tell_version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if not asked:
        return
    import monarch  # noqa: PLC0415 - what is asked for

    try:
        click.echo(f"monarch {monarch.__version__}")
    except MonarchError as error:
        raise click.ClickException(str(error)) from None
    ctx.exit()


@click.group(name="monarch")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and exit; `monarch doctor` says more.",
)
def group() -> None:
    """A single-controller actor runtime for GPU clusters."""


group.add_command(doctor.command)
group.add_command(serve.command)


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    doctor.run(group, package="monarch")


if __name__ == "__main__":
    main()
