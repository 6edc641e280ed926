"""Memory, copies, streams and events, end to end over stand-ins."""

from __future__ import annotations

PREAMBLE = """
from monarch import gpu
device = gpu.device(0)

def code(call):
    try:
        call()
    except gpu.GpuError as error:
        return error.code
    return 'no error'
"""


def run(package, text):
    return package.run(PREAMBLE + text).split()


def test_bytes_come_back_as_they_went(package):
    assert (
        run(
            package,
            """
data = bytes(range(256)) * 40
with device.allocate(len(data)) as memory:
    memory.write(data)
    print(memory.read() == data, memory.read(3, offset=5) == data[5:8])
    memory.write(b'xyz', offset=100)
    print(memory.read(5, offset=99) == data[99:100] + b'xyz' + data[103:104])
    memory.fill(0xAB)
    print(set(memory.read()) == {0xAB})
    other = gpu.device(1).allocate(len(data))
    other.write(data)
    memory.copy_from(other, 16, offset=8, source_offset=32)
    print(memory.read(17, offset=8) == data[32:48] + bytes([0xAB]))
""",
        )
        == ["True"] * 5
    )


def test_host_buffers_of_any_kind_are_taken(package):
    assert run(
        package,
        """
import array
memory = device.allocate(32)
memory.write(array.array('d', [1.0, 2.0, 3.0, 4.0]))
target = array.array('d', [0.0] * 4)
memory.read_into(target)
print(list(target) == [1.0, 2.0, 3.0, 4.0])
try:
    memory.read_into(bytes(8))
except (TypeError, BufferError):
    print('read-only refused')
""",
    ) == ["True", "read-only", "refused"]


def test_what_does_not_fit_is_refused_before_the_driver_sees_it(package):
    assert run(
        package,
        """
memory = device.allocate(16)
print(code(lambda: memory.write(bytes(17))))
print(code(lambda: memory.write(b'x', offset=16)))
print(code(lambda: memory.read(4, offset=-1)))
print(code(lambda: memory.copy_from(device.allocate(17))))
print(code(lambda: device.allocate(0)))
memory.release()
memory.release()
print(memory.address, code(lambda: memory.write(b'x')))
""",
    ) == ["invalid_argument"] * 5 + ["0", "invalid_argument"]


def test_memory_that_is_not_there_is_a_code_of_its_own(package):
    small = package.with_environment(MONARCH_STANDIN_MEMORY=str(1 << 20))
    assert run(
        small,
        """
print(code(lambda: device.allocate(2 << 20)))
with device.allocate(1 << 20):
    print(code(lambda: device.allocate(1)))
print(code(lambda: device.allocate(1 << 20)))
""",
    ) == ["out_of_memory", "out_of_memory", "no", "error"]


def test_a_dropped_object_gives_its_memory_back(package):
    assert run(
        package,
        """
before = device.memory_info()[0]
memory = device.allocate(1 << 20)
shared = device.allocate(1 << 20, shareable=True)
del memory, shared
print(device.memory_info()[0] == before)
""",
    ) == ["True"]


def test_streams_keep_their_order_and_events_order_streams(package):
    assert run(
        package,
        """
first, second = device.stream(), device.stream(priority=-1)
a, b = device.allocate(1 << 20), device.allocate(1 << 20)
right = True
for round in range(50):
    a.fill(round, stream=first)
    mark = first.record()
    second.wait(mark)
    b.copy_from(a, stream=second)
    done = second.record()
    done.synchronize()
    right &= done.done and set(b.read()) == {round}
print(right)
first.synchronize()
print(first.idle, second.idle)
start = first.record(timing=True)
a.fill(1, stream=first)
end = first.record(timing=True)
end.synchronize()
print(end.milliseconds_since(start) >= 0)
print(code(lambda: first.record().milliseconds_since(start)))
""",
    ) == ["True", "True", "True", "True", "device_failure"]


def test_a_stream_holds_the_host_buffer_of_a_queued_copy(package):
    assert run(
        package,
        """
import gc
memory = device.allocate(1 << 20)
right = True
for round in range(30):
    with device.stream() as stream:
        memory.write(bytes([round]) * (1 << 20), stream=stream)
        gc.collect()
        noise = [bytes(1 << 20) for _ in range(3)]
    right &= set(memory.read()) == {round}
print(right)
""",
    ) == ["True"]


def test_page_locked_memory_is_copied_both_ways(package):
    assert run(
        package,
        """
host = device.host_memory(4096)
host.view[:] = bytes(range(256)) * 16
memory = device.allocate(4096)
with device.stream() as stream:
    memory.write(host.view, stream=stream)
    stream.synchronize()
    host.view[:] = bytes(4096)
    memory.read_into(host.view, stream=stream)
print(bytes(host.view) == bytes(range(256)) * 16)
host.release()
host.release()
""",
    ) == ["True"]


def test_other_libraries_find_the_memory(package):
    assert run(
        package,
        """
memory = device.allocate(48)
array = memory.__cuda_array_interface__
print(array['shape'] == (48,), array['data'] == (memory.address, False), array['typestr'])
""",
    ) == ["True", "True", "|u1"]
