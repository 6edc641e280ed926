"""Functions that processes of these tests run before their work."""

from __future__ import annotations

import os
import sys

RAN = []


def obey():
    """Evaluate what the test asks, in the control thread."""
    from monarch._actor.process import process  # noqa: PLC0415 - as light as a user's module

    process().on("eval", lambda _peer, text: eval(text, globals()))  # noqa: S307 - the test's


def say(text, *, error=False):
    print(text, file=sys.stderr if error else sys.stdout)


async def obey_async():
    import asyncio  # noqa: PLC0415 - as above

    await asyncio.sleep(0)
    RAN.append("async")
    obey()


def refuse():
    raise RuntimeError(f"rank {os.environ['RANK']} has no licence")


def leave():
    os._exit(9)
