"""Ports for servers that have to be told theirs before they start."""

from __future__ import annotations

import contextlib
import random
import socket

# Below those that the system gives to connections, each of which would be in a server's way; and
# below the one on which pods and hosts of the tests listen, each at an address of its own.
_RANGE = range(10_240, 26_000)


def free_ports(count: int) -> list[int]:
    """As many ports, on which nothing listens at any address; random, as others choose as well."""
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
            taken = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                taken.bind(("", port))
                found.append(port)
            if len(found) == count:
                return found
    raise OSError(f"no {count} ports between {_RANGE.start} and {_RANGE.stop} are free")
