"""One rank of a communicator. Rank 0 prints the unique id, the others read it from stdin.

After that each line of stdin is a Python expression or statement over `world`; what it evaluates to
is printed as JSON.
"""

import json
import struct
import sys

from monarch import gpu

FORMATS = {
    "int8": "b",
    "uint8": "B",
    "int32": "i",
    "int64": "q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


class World:
    """The rank, its communicator, and typed memory."""

    def __init__(self, rank: int, size: int, unique_id: bytes) -> None:
        self.rank = rank
        self.size = size
        self.device = gpu.device(rank % len(gpu.devices()))
        self.stream = self.device.stream()
        self.communicator = gpu.Communicator.create(self.device.ordinal, unique_id, rank, size)

    def put(self, dtype: str, values: list) -> gpu.Memory:
        data = pack(dtype, values)
        memory = self.device.allocate(len(data))
        memory.write(data)
        return memory

    def get(self, dtype: str, memory: gpu.Memory) -> list:
        self.stream.synchronize()
        self.communicator.check()
        return unpack(dtype, memory.read())

    def all_reduce(self, dtype: str, reduction: str, count: int) -> list:
        send = self.put(dtype, values(self.rank, count))
        receive = self.put(dtype, [0] * count)
        self.communicator.all_reduce(send, receive, dtype, reduction, stream=self.stream)
        return self.get(dtype, receive)

    def all_gather(self, count: int) -> list:
        send = self.put("int32", values(self.rank, count))
        receive = self.put("int32", [0] * count * self.size)
        self.communicator.all_gather(send, receive, "int32", stream=self.stream)
        return self.get("int32", receive)

    def reduce_scatter(self, count: int) -> list:
        send = self.put("int64", values(self.rank, count * self.size))
        receive = self.put("int64", [0] * count)
        self.communicator.reduce_scatter(send, receive, "int64", stream=self.stream)
        return self.get("int64", receive)

    def broadcast(self, root: int, count: int) -> list:
        memory = self.put("int8", values(self.rank, count))
        self.communicator.broadcast(memory, "int8", root, stream=self.stream)
        return self.get("int8", memory)

    def reduce(self, root: int, count: int) -> list:
        send = self.put("float32", values(self.rank, count))
        receive = self.put("float32", [-1] * count)
        self.communicator.reduce(send, receive, "float32", root=root, stream=self.stream)
        return self.get("float32", receive)

    def ring(self, count: int) -> list:
        """Send to the next rank while receiving from the one before."""
        send = self.put("int32", values(self.rank, count))
        receive = self.put("int32", [0] * count)
        with gpu.group():
            self.communicator.send(send, "int32", (self.rank + 1) % self.size, stream=self.stream)
            self.communicator.receive(
                receive, "int32", (self.rank - 1) % self.size, stream=self.stream
            )
        return self.get("int32", receive)

    def split_sum(self) -> list:
        """Even and odd ranks apart, in reverse order; rank 0 of each part broadcasts its rank."""
        part = self.communicator.split(self.rank % 2, -self.rank)
        assert part is not None
        memory = self.put("int32", [self.rank])
        part.all_reduce(memory, memory, "int32", stream=self.stream)
        self.stream.synchronize()
        return [part.rank, part.size, unpack("int32", memory.read())[0]]

    def sit_out(self) -> str:
        part = self.communicator.split(None if self.rank == 0 else 7, self.rank)
        return "none" if part is None else f"{part.rank} of {part.size}"

    def lost(self) -> str:
        """Wait for a rank that never comes."""
        memory = self.put("int32", [1])
        self.communicator.all_reduce(memory, memory, "int32", stream=self.stream)
        self.stream.synchronize()
        try:
            self.communicator.check()
        except gpu.GpuError as error:
            self.communicator.abort()
            return error.code
        return "no error"

    def abort_stuck(self) -> str:
        """An operation that cannot end is ended by abort."""
        memory = self.put("int32", [1])
        self.communicator.all_reduce(memory, memory, "int32", stream=self.stream)
        before = self.stream.idle
        self.communicator.abort()
        self.stream.synchronize()
        return f"{before} {self.stream.idle}"


def values(rank: int, count: int) -> list:
    return [(rank + 1) * (at % 5) + rank for at in range(count)]


def pack(dtype: str, numbers: list) -> bytes:
    if dtype == "bfloat16":
        return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    return struct.pack(f"<{len(numbers)}{FORMATS[dtype]}", *numbers)


def unpack(dtype: str, data: bytes) -> list:
    if dtype == "bfloat16":
        halves = [data[at : at + 2] for at in range(0, len(data), 2)]
        return [struct.unpack("<f", b"\0\0" + half)[0] for half in halves]
    return [number for (number,) in struct.iter_unpack(f"<{FORMATS[dtype]}", data)]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(rank: int, size: int) -> None:
    if rank == 0:
        unique_id = gpu.Communicator.unique_id()
        say(unique_id.hex())
    else:
        unique_id = bytes.fromhex(sys.stdin.readline())
    world = World(rank, size, unique_id)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        say(json.dumps(getattr(world, name)(*arguments)))
    world.communicator.release()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
