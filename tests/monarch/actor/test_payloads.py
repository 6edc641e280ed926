"""Large payloads: what arrives is what was sent, memory and descriptors come back."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from monarch._core import to_bytes

from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch.errors import MeshFailure, SupervisionError
from monarch.testing import leaks
from tests.monarch.actor import rig
from tests.monarch.actor.rig import process, spawn, stop

KIB, MIB = 1 << 10, 1 << 20


def open_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class Array:
    """Memory that pickles out of band and is rebuilt over the buffer that arrives, as numpy's."""

    def __init__(self, buffer):
        self.view = memoryview(buffer)

    def __reduce_ex__(self, protocol):
        return Array, (pickle.PickleBuffer(self.view),)


def pattern(size, seed=1):
    block = bytes((seed + i * 7) % 251 for i in range(4099))
    return (block * (size // len(block) + 1))[:size]


class Echo(Actor):
    def __init__(self):
        self.kept = []

    @endpoint
    def same(self, value):
        return value

    @endpoint
    def named(self, *, value):
        return value

    @endpoint
    def scribble(self, array):
        array.view[:4] = b"mine"
        return bytes(array.view[:8])

    @endpoint
    def keep(self, array):
        self.kept.append(array)
        return len(self.kept)

    @endpoint
    def first_bytes(self):
        return [bytes(array.view[:4]) for array in self.kept]

    @endpoint
    def release(self):
        self.kept.clear()

    @endpoint
    def segments(self):
        return process().engine.segments()

    @endpoint
    def descriptors(self):
        return open_descriptors()

    @endpoint
    def contents(self, *arrays):
        return [bytes(array.view) for array in arrays]


def no_longer_lent(engine):
    """Everything that was lent has come back; the last of it may still be on its way."""
    inbox = engine.open_inbox()
    for _ in range(200):
        if engine.segments()["lent"] == 0:
            return True
        inbox.wait(1, 0.02)  # drives the engine
    return False


@pytest.mark.parametrize("size", [64 * KIB - 1, 64 * KIB, MIB - 1, MIB + 1, 5 * MIB + 3])
def test_bytes_and_arrays_of_any_size_come_back_as_they_were(procs, size):
    echo = spawn(Echo, procs=procs)
    for seed in range(6):
        data = pattern(size, seed)
        assert echo.same.call_one(data).get(timeout=20) == data
        back = echo.same.call_one(Array(bytearray(data))).get(timeout=20)
        assert back.view == data
        assert not back.view.readonly
    assert type(echo.same.call_one(data).get(timeout=20)) is bytes
    assert echo.named.call_one(value=data).get(timeout=20) == data
    stop(echo)


def test_more_than_a_frame_holds_travels_too(child):
    echo = spawn(Echo, procs=[child])
    data = pattern(70 * MIB)
    for _ in range(2):
        assert echo.same.call_one(data).get(timeout=60) == data
    stop(echo)


def test_several_arrays_of_one_call_keep_their_places(child):
    echo = spawn(Echo, procs=[child])
    parts = [pattern(size, size) for size in (1, 70 * KIB, 0, 300 * KIB, 63)]
    for _ in range(5):
        got = echo.contents.call_one(*(Array(bytearray(part)) for part in parts)).get(timeout=20)
        assert got == parts
    stop(echo)


def test_a_receiver_may_write_into_what_it_got_and_nobody_else_sees_it(procs):
    echo = spawn(Echo, procs=procs)
    data = bytearray(pattern(300 * KIB))
    before = bytes(data)
    for _ in range(6):
        assert echo.scribble.call_one(Array(data)).get(timeout=20) == b"mine" + before[4:8]
    assert data == before
    stop(echo)


def test_actors_that_get_the_same_array_each_have_their_own(child):
    echo = spawn(Echo, procs=[child, process().id])
    data = bytearray(pattern(300 * KIB))
    for _ in range(6):
        echo.keep.call(Array(data)).get(timeout=20)
        echo.scribble.call(Array(data)).get(timeout=20)
    assert echo.first_bytes.call().get(timeout=20) == [[bytes(data[:4])] * 6] * 2
    stop(echo)


def test_what_a_receiver_keeps_is_not_overwritten_by_what_comes_later(child):
    echo = spawn(Echo, procs=[child])
    for seed in range(30):
        echo.keep.call_one(Array(bytearray(pattern(100 * KIB, seed)))).get(timeout=20)
    got = echo.first_bytes.call_one().get(timeout=20)
    assert got == [pattern(4, seed) for seed in range(30)]
    assert process().engine.segments()["lent"] >= 12
    echo.release.call_one().get(timeout=20)
    assert no_longer_lent(process().engine)
    stop(echo)


def test_ten_thousand_large_messages_leave_nothing_behind(child):
    echo = spawn(Echo, procs=[child])
    engine = process().engine
    array = Array(bytearray(pattern(80 * KIB)))
    for _ in range(20):
        echo.same.call_one(array).get(timeout=20)
    own, theirs = open_descriptors(), echo.descriptors.call_one().get(timeout=20)
    made, made_there = engine.segments()["made"], echo.segments.call_one().get()["made"]
    for _ in range(10_000):
        echo.same.call_one(array).get(timeout=20)
    assert no_longer_lent(engine)
    assert engine.segments()["made"] - made <= 2
    assert echo.segments.call_one().get()["made"] - made_there <= 2
    assert open_descriptors() - own <= 2
    assert echo.descriptors.call_one().get(timeout=20) - theirs <= 2
    assert engine.segments()["borrowed"] == 0
    stop(echo)


def test_a_killed_receiver_costs_no_segment_and_what_came_from_it_stays():
    engine = process().engine
    proc = rig.start_child()
    echo = spawn(Echo, procs=[proc])
    for seed in range(8):
        echo.keep.call_one(Array(bytearray(pattern(200 * KIB, seed)))).get(timeout=20)
    last = None
    for _ in range(4):
        last = echo.same.call_one(Array(bytearray(pattern(200 * KIB, 9)))).get(timeout=20)
    before = open_descriptors()
    pid = rig.children.pop()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pending = echo.same.call_one(Array(bytearray(200 * KIB)))
    engine.fail_peer(proc, pickle.dumps(MeshFailure("signal", "echo", (0,))))
    with pytest.raises(SupervisionError):
        pending.get(timeout=20)
    assert no_longer_lent(engine)
    assert open_descriptors() < before
    assert last.view == pattern(200 * KIB, 9)


def test_memory_kept_for_the_next_message_is_no_leak(child):
    echo = spawn(Echo, procs=[child])
    before = leaks.Snapshot()
    array = Array(bytearray(3 * MIB))
    for _ in range(4):
        array = echo.same.call_one(array).get(timeout=20)
    assert process().engine.segments()["idle"] > 0
    assert no_longer_lent(process().engine)
    assert leaks.leaks(before, 5) == []
    assert process().engine.segments()["idle"] == 0
    stop(echo)


def test_to_bytes_copies_any_buffer():
    for size in (0, 1, 100_000, 34 * MIB):
        data = pattern(size)
        assert to_bytes(memoryview(data)) == data
    source = bytearray(b"abc")
    copy = to_bytes(source)
    source[0] = 0
    assert copy == b"abc"


SCRIPT = """
    import resource, signal, sys, warnings
    sys.path[:0] = {path!r}
    from tests.monarch.actor import rig
    from tests.monarch.actor.test_payloads import Array, Echo, MIB, pattern
    warnings.simplefilter("always")
    {before}
    child = rig.start_child()
    echo = rig.spawn(Echo, procs=[child])
    data = pattern(3 * MIB)
    for _ in range(4):
        assert echo.same.call_one(data).get(timeout=20) == data
        assert echo.same.call_one(Array(bytearray(data))).get(timeout=20).view == data
    print("made", rig.process().engine.segments()["made"])
    """


def run(before):
    code = textwrap.dedent(SCRIPT).format(path=sys.path, before=before)
    return subprocess.run(  # noqa: PLW1510 - the status is looked at with the output
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )


def test_without_room_for_shared_memory_messages_go_by_socket_with_one_warning():
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))"
    done = run(f"{limit}; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "made 0\n"
    # One in this process, one in the child.
    assert done.stderr.count("large messages travel by socket, which is slower") == 2
    assert "File too large" in done.stderr


def test_with_few_descriptors_messages_go_through():
    done = run("resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))")
    assert done.returncode == 0, done.stderr


def test_the_limit_of_this_process_is_untouched():
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
