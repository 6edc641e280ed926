"""What a coroutine cannot do without, through everything with which asyncio lets one wait."""

from __future__ import annotations

import asyncio

import pytest

from monarch._supervision.awaited import needed


async def leaf(future):
    return await future


def started(futures):
    return [asyncio.ensure_future(leaf(future)) for future in futures]


async def one(futures):
    await futures[0]


async def all_gathered(futures):
    await asyncio.gather(*futures)


async def coroutines_gathered(futures):
    await asyncio.gather(*map(leaf, futures))


async def all_waited(futures):
    await asyncio.wait(started(futures))


async def first_waited(futures):
    await asyncio.wait(started(futures), return_when=asyncio.FIRST_COMPLETED)


async def only_one_waited(futures):
    await asyncio.wait(started(futures[:1]), return_when=asyncio.FIRST_COMPLETED)


async def in_time(futures):
    await asyncio.wait_for(leaf(futures[0]), 60)


async def under_timeout(futures):
    async with asyncio.timeout(60):
        await leaf(futures[0])


async def shielded(futures):
    await asyncio.shield(leaf(futures[0]))


async def grouped(futures):
    async with asyncio.TaskGroup() as group:
        for future in futures:
            group.create_task(leaf(future))


async def nested(futures):
    await asyncio.wait_for(asyncio.gather(grouped(futures[:2]), leaf(futures[2])), 60)


async def something_else(futures):
    others = started(futures)
    await asyncio.Event().wait()
    await asyncio.gather(*others)


async def as_they_come(futures):
    for done in asyncio.as_completed(started(futures)):
        await done


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (one, (0,)),
        (all_gathered, (0, 1, 2)),
        (coroutines_gathered, (0, 1, 2)),
        (all_waited, (0, 1, 2)),
        (first_waited, ()),
        (only_one_waited, (0,)),
        (in_time, (0,)),
        (under_timeout, (0,)),
        (shielded, (0,)),
        (grouped, (0, 1, 2)),
        (nested, (0, 1, 2)),
        (something_else, ()),
        (as_they_come, ()),
    ],
)
def test_what_is_needed_is_found_and_nothing_else(body, wanted):
    async def look():
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in range(3)]
        task = asyncio.create_task(body(futures))
        found = []
        for done in ((), (2,)):
            for place in done:
                futures[place].set_result(None)
            for _ in range(8):  # everything that can go on has done so
                await asyncio.sleep(0)
            ids = needed(task)
            found.append({place for place in range(3) if id(futures[place]) in ids})
        task.cancel()
        await asyncio.wait([task])
        for future in futures:
            future.cancel()
        return found

    before, after = asyncio.run(look())
    assert before == set(wanted)
    assert after == set(wanted) - {2}
