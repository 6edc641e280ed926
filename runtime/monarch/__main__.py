"""`python -m monarch`, and the console script `monarch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monarch import doctor
from monarch._cli import serve

if TYPE_CHECKING:
    from typing import NoReturn


@click.group(name="monarch")
def group() -> None:
    """A single-controller actor runtime for GPU clusters."""


group.add_command(doctor.command)
group.add_command(serve.command)


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    doctor.run(group)


if __name__ == "__main__":
    main()
