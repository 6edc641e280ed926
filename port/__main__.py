"""`python -m port`, and the console script `port`: the commands of its parts under one name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

from port.cli import run

if TYPE_CHECKING:
    from typing import NoReturn

_COMMANDS = {
    "hipify": ("port.hipify.cli", "main"),
    "platform": ("port.platform", "command"),
    "verify": ("port.verify.command", "command"),
}


class _Parts(click.Group):
    """Imports a part when its command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(_COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        found = getattr(importlib.import_module(module), name)
        assert isinstance(found, click.Command)  # noqa: S101 - a table of our own
        return found


@click.group(name="port", cls=_Parts)
def group() -> None:
    """Turn one CUDA C++ source tree into wheels for CUDA and ROCm, and prove what each links."""


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    run(group)


if __name__ == "__main__":
    main()
