"""A client with an event loop of its own: await calls, run them together, limit their time."""

from __future__ import annotations

import asyncio

from monarch.actor import Actor, endpoint, this_host


class Kitchen(Actor):
    @endpoint
    async def cook(self, dish: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return dish


async def main() -> None:
    procs = this_host().spawn_procs(per_host={"cooks": 3})
    kitchen = procs.spawn("kitchen", Kitchen)

    cooks = [kitchen.slice(cooks=rank) for rank in range(3)]
    dishes = ["soup", "bread", "tea"]
    served = await asyncio.gather(
        *(cook.cook.call_one(dish, 0.01) for cook, dish in zip(cooks, dishes, strict=True))
    )
    print("served:", *served)

    for finished in kitchen.cook.stream("rice", 0.01):
        print("ready:", await finished)

    in_time = cooks[0].cook.options(timeout=0.2)
    try:
        await in_time.call_one("stew", 3600)
    except TimeoutError:
        print("the stew takes too long")
    print("still open:", await cooks[0].cook.call_one("salad", 0))
    await procs.stop()


if __name__ == "__main__":
    asyncio.run(main())
