"""How every `port` command starts and ends: click parses, the error class gives the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from port.errors import ExitCode, PortError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def run(
    command: click.Command, args: Sequence[str] | None = None, *, package: str = "port"
) -> NoReturn:
    """Run `command` of `package` and exit with the status of `port.errors.ExitCode`.

    The command returns its status as an integer, or None for success.
    """
    sys.exit(_status(command, args, package))


def _status(command: click.Command, args: Sequence[str] | None, package: str) -> int:
    try:
        result = command.main(args=args, standalone_mode=False)
    except click.exceptions.Abort:
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except PortError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return ExitCode.FINDINGS
    except Exception:  # noqa: BLE001 - the last line of defence reports a bug of ours as one
        import traceback  # noqa: PLC0415 - nobody should need it

        traceback.print_exc()
        click.echo(f"error: this is a bug in {package}; please report the lines above", err=True)
        return ExitCode.BUG
    return int(result) if isinstance(result, int) else ExitCode.CLEAN
