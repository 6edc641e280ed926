"""`default_bootstrap_cmd`: the program that processes of a mesh are, to be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monarch._proc.interpreter import command

if TYPE_CHECKING:
    from collections.abc import Mapping


class BootstrapCommand:
    """A program to start processes with, for `spawn_procs(bootstrap_command=…)`.

    Attributes:
        program: its path.
        arg0: the name it is called by, None for its path.
        args: its arguments.
        env: variables, over those of the host; None as a value unsets one.

    """

    __slots__ = ("arg0", "args", "env", "program")

    def __init__(
        self,
        program: str,
        arg0: str | None = None,
        args: list[str] | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> None:
        self.program = program
        self.arg0 = arg0
        self.args = list(args or [])
        self.env: dict[str, str | None] = dict(env or {})

    def with_env(self, env: Mapping[str, str | None]) -> BootstrapCommand:
        """The same program with these variables as well."""
        return BootstrapCommand(self.program, self.arg0, self.args, {**self.env, **env})

    def __repr__(self) -> str:
        return f"BootstrapCommand({self.program!r}, args={self.args!r}, env={self.env!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BootstrapCommand):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.program, tuple(self.args)))

    def _values(self) -> tuple[Any, ...]:
        return self.program, self.arg0, self.args, self.env


def default_bootstrap_cmd() -> BootstrapCommand:
    """What processes are started with by default where they are programs of their own.

    Raises:
        RuntimeError: this interpreter is embedded in another program.

    """
    program, *args = command("monarch._proc.child")
    return BootstrapCommand(program, None, args)
