"""What a session takes after `--`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import nox


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds that a session may spend, shared evenly by `parts`."""

    seconds: int

    def share(self, parts: int) -> int:
        return max(1, self.seconds // max(1, parts))


def budget(session: nox.Session, default: int) -> Budget:
    """`--seconds N` of the session's arguments."""
    parser = argparse.ArgumentParser(prog=f"nox -s {session.name} --")
    parser.add_argument("--seconds", type=int, default=default, help="time for all of them")
    return Budget(parser.parse_args(session.posargs).seconds)
