"""Actors with a device each: which they see, what they hold, and what they reduce together."""

from __future__ import annotations

import os
import signal

import pytest

import monarch.actor
from monarch import gpu
from monarch.actor import Actor, current_rank, endpoint, this_host
from monarch.errors import ActorCrashError

T = 120


class Holder(Actor):
    """Memory on the one device of its process, and a place among those of the mesh."""

    def __init__(self) -> None:
        (self.device,) = gpu.devices()
        self.memory = self.device.allocate(1 << 20)

    @endpoint
    def uuid(self) -> str:
        return str(self.device.uuid)

    @endpoint
    def write(self, data: bytes) -> None:
        self.memory.write(data)

    @endpoint
    def read(self, size: int) -> bytes:
        return self.memory.read(size)

    @endpoint
    def unique_id(self) -> bytes:
        return gpu.Communicator.unique_id()

    @endpoint
    def sum_of_ranks(self, unique_id: bytes, size: int) -> int:
        rank = current_rank().rank
        with self.device.stream() as stream:
            world = gpu.Communicator.create(self.device.ordinal, unique_id, rank, size)
            with self.device.allocate(4) as number:
                number.write((rank + 1).to_bytes(4, "little"))
                world.all_reduce(number, number, "int32", "sum", stream=stream)
                stream.synchronize()
                world.check()
                return int.from_bytes(number.read(), "little")

    @endpoint
    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def procs():
    made = this_host().spawn_procs(per_host={"gpus": len(gpu.devices())})
    yield made
    made.stop().get(timeout=T)


def test_each_actor_has_the_device_of_its_rank(procs):
    holders = procs.spawn("holders", Holder)
    seen = list(holders.uuid.call().get(timeout=T).values())
    assert seen == [str(device.uuid) for device in gpu.devices()]


def test_actors_hold_memory_of_their_own_device(procs):
    holders = procs.spawn("holders", Holder)
    size = len(gpu.devices())
    for rank in range(size):
        holders.slice(gpus=rank).write.call_one(bytes([rank] * 1000)).get(timeout=T)
    held = list(holders.read.call(1000).get(timeout=T).values())
    assert held == [bytes([rank] * 1000) for rank in range(size)]


def test_actors_reduce_over_their_devices(procs):
    try:
        gpu.collectives_library()
    except gpu.GpuError as error:
        pytest.skip(str(error))
    holders = procs.spawn("holders", Holder)
    size = len(gpu.devices())
    unique_id = holders.slice(gpus=0).unique_id.call_one().get(timeout=T)
    sums = list(holders.sum_of_ranks.call(unique_id, size).get(timeout=T).values())
    assert sums == [size * (size + 1) // 2] * size


def test_a_lost_actor_is_replaced_and_has_the_same_device(procs, monkeypatch):
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", lambda _failure: None)
    holders = procs.spawn("holders", Holder)
    last = len(gpu.devices()) - 1
    before = holders.slice(gpus=last).uuid.call_one().get(timeout=T)
    with pytest.raises(ActorCrashError):
        holders.slice(gpus=last).die.call_one().get(timeout=T)
    procs.respawn([last]).get(timeout=T)
    assert holders.slice(gpus=last).uuid.call_one().get(timeout=T) == before
