"""The actor of the Monarch API whose endpoints are async."""

from __future__ import annotations

import os

from monarch.actor import Actor, endpoint


class LoopCell(Actor):
    @endpoint
    async def inc(self, value: int) -> int:
        return value + 1

    @endpoint
    async def pid(self) -> int:
        return os.getpid()
