"""Running a fresh interpreter like this one, or another program, as a process of ours."""

from __future__ import annotations

import _signal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_FLAGS = (
    ("isolated", "-I"),
    ("ignore_environment", "-E"),
    ("no_user_site", "-s"),
    ("no_site", "-S"),
    ("safe_path", "-P"),
    ("dont_write_bytecode", "-B"),
    ("optimize", "-O"),
    ("bytes_warning", "-b"),
    ("verbose", "-v"),
)
# The package may have been found by a path that a fresh interpreter would not have, and its parts
# may lie in several folders.
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop()); import monarch; "
    "monarch.__path__[:] = sys.argv.pop().splitlines(); from {0} import main; main()"
)


def command(module: str, executable: str | None = None, arguments: Sequence[str] = ()) -> list[str]:
    """A command line that runs `main` of a module of ours in a fresh interpreter.

    Raises:
        RuntimeError: the interpreter does not know its own path (it is embedded).

    """
    program = executable or sys.executable
    if not program:
        raise RuntimeError(
            "cannot start processes: sys.executable is empty, so this interpreter is embedded in "
            "another program; set sys.executable to a Python that has this package"
        )
    found = [program]
    for name, option in _FLAGS:
        found += [option] * int(getattr(sys.flags, name))
    for option in sys.warnoptions:
        found.append(f"-W{option}")
    for name, value in sys._xoptions.items():  # noqa: SLF001 - documented, for this very use
        found.append(f"-X{name}" if value is True else f"-X{name}={value}")
    parts = [os.path.abspath(folder) for folder in sys.modules["monarch"].__path__]
    start = _START.format(module)
    return [*found, "-c", start, *arguments, "\n".join(parts), os.path.dirname(parts[0])]


def spawn_session(
    arguments: list[str], variables: dict[str, str], actions: Sequence[tuple[Any, ...]]
) -> int:
    """Run a program as leader of a session of its own; its pid."""
    defaults = [_signal.SIGINT, _signal.SIGCHLD, _signal.SIGPIPE, _signal.SIGTERM]
    try:
        return os.posix_spawnp(
            arguments[0],
            arguments,
            variables,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=defaults,
        )
    except NotImplementedError:  # an old C library: a group instead
        return os.posix_spawnp(
            arguments[0],
            arguments,
            variables,
            file_actions=actions,
            setpgroup=0,
            setsigmask=(),
            setsigdef=defaults,
        )
